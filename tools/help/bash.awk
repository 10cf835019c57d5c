# A completion for bash, from the lines of table.awk with the scope before them. Files are completed where nothing else is.
BEGIN { FS = "\t" }

$2 == "command" { commands = commands " " $3; next }
$2 == "program" { takes_program = 1; next }
{
  if (!($1 in options)) scopes[++scope_count] = $1
  options[$1] = options[$1] " " $3
  if ($4 == "" || $3 in has_value) next
  has_value[$3]
  choices = $4
  if (gsub(/\|/, " ", choices)) of_choices = of_choices "    " $3 ") " offer(choices) "; return ;;\n"
  with_value = with_value (with_value ? " | " : "") $3
}

function offer(words) { return "COMPREPLY=($(compgen -W \"" words "\" -- \"$2\"))" }

END {
  identifier = name
  gsub(/-/, "_", identifier)
  print "# Completion of " name " for bash, made from its --help."
  print "_" identifier "() {"
  print "  local options i"
  print "  COMPREPLY=()"
  if (takes_program) {
    print "  for ((i = 1; i < COMP_CWORD; i++)); do"
    print "    case ${COMP_WORDS[i]} in"
    if (with_value) print "      " with_value ") ((i++)) ;;"
    print "      -?*) ;;"
    print "      *) return ;;  # the program and its own arguments"
    print "    esac"
    print "  done"
  }
  print "  case $3 in"
  printf "%s", of_choices
  if (with_value) print "    " with_value ") return ;;"
  print "  esac"
  print "  case ${COMP_WORDS[1]} in"
  for (i = 1; i <= scope_count; i++) {
    scope = scopes[i]
    if (scope != "") print "    " scope ") options=\"" substr(options[scope], 2) "\" ;;"
  }
  print "    *) options=\"" substr(options[""], 2) "\" ;;"
  print "  esac"
  print "  if [[ $2 == -* ]]; then"
  print "    " offer("$options")
  if (commands) {
    print "  elif ((COMP_CWORD == 1)); then"
    print "    " offer(substr(commands, 2))
  } else if (takes_program) {
    print "  else"
    print "    COMPREPLY=($(compgen -c -- \"$2\"))"
  }
  print "  fi"
  print "}"
  print "complete -o default -F _" identifier " " name
}
