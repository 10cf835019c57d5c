// What parameter servers and coordinators send is encoded as the calls of <cohort/rpc/client.h> are.
// Internal.
#pragma once

#include <cohort/rpc/detail/codec.h>
#include <cohort/server/sharded_variable.h>

namespace cohort::server {

using rpc::decode;
using rpc::Decoder;
using rpc::encode;
using rpc::Encoder;
using rpc::kSendable;
using rpc::kSendableAnywhere;
using rpc::VariableTable;

}  // namespace cohort::server
