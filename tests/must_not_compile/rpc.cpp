// Says: a method has one fixed signature: register a function or a lambda without auto parameters
// Says: a method takes what cannot travel
// Says: a method returns what cannot travel
// Says: a method's arguments are its own: it takes them by value or by const reference
// Says: call<Signature>() takes the method's function type
// Says: the arguments of call() are not those of the function type that it is given
#include <string>

#include <cohort/rpc/client.h>
#include <cohort/rpc/server.h>
#include <cohort/value/variable.h>

using cohort::Tensor;
using cohort::Variable;
using cohort::rpc::Client;
using cohort::rpc::Server;

int half(int number) { return number / 2; }

#ifdef MISUSE
void without_signature(Server& server) {
  server.register_method("same", [](auto value) { return value; });
}
void of_variable(Server& server) {
  server.register_method("read", [](const Variable& variable) { return variable.read(); });
}
void to_variable(Server& server, const Variable& variable) {
  server.register_method("find", [=]() -> Variable { return variable; });
}
void changes_argument(Server& server) {
  server.register_method("fill", [](Tensor& tensor) { return tensor; });
}
auto untyped(const Client& client) { return client.call<int>("half", 4); }
auto too_many(const Client& client) { return client.call<int(int)>("half", 4, 5); }
#else
void without_signature(Server& server) {
  server.register_method("same", [](int value) { return value; });
}
void of_variable(Server& server, const Variable& variable) {
  server.register_method("read", [=] { return variable.read(); });
}
void to_variable(Server& server) { server.register_method("half", half); }
void changes_argument(Server& server) {
  server.register_method("fill", [](Tensor tensor) { return tensor; });
}
auto untyped(const Client& client) { return client.call<int(int)>("half", 4); }
auto too_many(const Client& client) { return client.call<int(int)>("half", 4); }
#endif

int use(Server& server, const Client& client) {
  without_signature(server);
  changes_argument(server);
  static_cast<void>(untyped(client));
  static_cast<void>(too_many(client));
  return half(1);
}
