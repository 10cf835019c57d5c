# Reads a --help text and prints a line for each command and option in it, with tabs between the fields:
#
#   command  NAME             TEXT
#   option   NAME  VALUE      TEXT       value: what the option takes; empty if nothing
#   program                              whatever follows the options is another program's command line
#
# -v commands="A B ..." are the commands, if there are any; then those options are left out that stand below
# `Options of ...`. -v scope=COMMAND: the text is what is said of that command; left out are options below `Options of A and
# B` where A and B are commands, and it is neither.
BEGIN {
  OFS = "\t"
  split(commands, words, " ")
  for (i in words) is_command[words[i]]
}

# The first part of what is said, which fits into a line of a menu.
function first_part(text) {
  sub(/^ +/, "", text)
  sub(/[;:].*/, "", text)
  gsub(/['"`\\\[\]]/, "", text)
  return text
}

function finish() {
  if (name != "" && !(scope != "" && name == "--version")) print "option", name, value, first_part(text)
  name = ""
}

/^Usage:.* PROGRAM/ { print "program" }

/^[^ ]/ {
  finish()
  is_for_others = 0
  if ($0 !~ /^Options of /) next
  is_for_others = scope == "" && commands != ""
  count = split($0, words, /[ ,:]+/)
  for (i = 3; scope != "" && i <= count; i++) {
    if (!(words[i] in is_command)) continue
    if (words[i] == scope) { is_for_others = 0; next }
    is_for_others = 1
  }
  next
}

# Options, as `  -h, --help   print`, `  --to FILE   where` or `  --to FILE` and the text in the next line.
/^  ? ? ?-/ {
  finish()
  if (is_for_others) next
  sub(/^ +/, "")
  head = $0
  text = ""
  if (match($0, /  +/)) {
    head = substr($0, 1, RSTART - 1)
    text = substr($0, RSTART)
  }
  count = split(head, words, /[ =]|\[=?/)
  short = words[1] ~ /,$/
  name = words[1 + short]
  value = count > 1 + short ? words[2 + short] words[3 + short] : ""
  gsub(/[\[\]]/, "", value)
  next
}

name != "" && text == "" { text = $0 }

/^  [a-z][a-z-]*( [A-Z][A-Z.]*)*  +[^ ]/ && scope == "" {
  command = $1
  sub(/^  [a-z-]*( [A-Z][A-Z.]*)*  +/, "")
  print "command", command, "", first_part($0)
}

END { finish() }
