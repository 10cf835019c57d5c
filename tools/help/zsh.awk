# A completion for zsh, from the lines of table.awk with the scope before them.
BEGIN { FS = "\t" }

$2 == "command" { commands = commands " '" $3 ":" $5 "'"; next }
$2 == "program" { takes_program = 1; next }
{
  if (!($1 in options)) scopes[++scope_count] = $1
  choices = $4
  value = ""
  if (gsub(/\|/, " ", choices)) value = ":value:(" choices ")"
  else if ($4 ~ /FILE|FOLDER|PATH/) value = ":" $4 ":_files"
  else if ($4 != "") value = ":" $4 ": "
  options[$1] = options[$1] " '" $3 "[" $5 "]" value "'"
}

END {
  print "#compdef " name
  print "# Completion of " name " for zsh, made from its --help."
  print "local -a options commands"
  print "case $words[2] in"
  for (i = 1; i <= scope_count; i++) {
    scope = scopes[i]
    if (scope != "") print "  " scope ") options=(" substr(options[scope], 2) ") ;;"
  }
  print "  *) options=(" substr(options[""], 2) ") ;;"
  print "esac"
  rest = takes_program ? "'(-):program:_command_names -e' '*::arguments:_normal'" : "'*:file:_files'"
  if (commands) {
    print "commands=(" substr(commands, 2) ")"
    print "if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then"
    print "  _describe command commands"
    print "else"
    print "  _arguments $options " rest
    print "fi"
  } else {
    print "_arguments $options " rest
  }
}
