# Which symbols of a library are promised: those whose every name, of namespaces, classes and functions, occurs in the public headers,
# and which are in no namespace `detail`. A name of the library's own may occur there by chance: then it is compared, too.
#
#   awk -f abi_promised.awk HEADERS SYMBOLS     SYMBOLS: a mangled name, a tab and the demangled one in a line
#
# Prints what abidw calls a white list.
FNR == NR {
  gsub(/[^A-Za-z0-9_]+/, " ")
  count = split($0, words, " ")
  for (i = 1; i <= count; i++) known[words[i]] = 1
  next
}
FNR == 1 { FS = "\t"; $0 = $0; print "[abi_whitelist]" }
{
  name = $2
  if (name ~ /\(anonymous namespace\)/) next
  sub(/^(vtable|typeinfo|typeinfo name|VTT|guard variable|construction vtable) for /, "", name)
  gsub(/operator\(\)/, "operator", name)
  gsub(/operator(<<|>>|<=>|->|[-<>=!+*\/%&|^~]=?|\[\])/, "operator", name)
  while (gsub(/<[^<>]*>/, "", name)) {}
  sub(/\(.*/, "", name)
  gsub(/\[abi:[a-z0-9]+\]/, "", name)
  if (name !~ /operator /) sub(/.* /, "", name)  # the type that a template returns
  if (name !~ /^cohort::/ || name ~ /(^|::)detail::/) next
  count = split(name, parts, "::")
  for (i = 1; i <= count; i++) {
    sub(/^~/, "", parts[i])
    sub(/^operator .*/, "operator", parts[i])
    if (!(parts[i] in known)) next
  }
  print "  " $1
}
