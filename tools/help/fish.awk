# Completions for fish, from the lines of table.awk with the scope before them.
BEGIN { FS = "\t" }
NR == 1 { print "# Completions of " name " for fish, made from its --help." }

$2 == "command" {
  printf "complete -c %s -n __fish_use_subcommand -a %s -d '%s'\n", name, $3, $5
  has_commands = 1
  next
}
$2 == "program" { printf "complete -c %s -xa '(__fish_complete_subcommand)'\n", name; next }
{
  condition = $1 != "" ? " -n '__fish_seen_subcommand_from " $1 "'" : has_commands ? " -n __fish_use_subcommand" : ""
  kind = $3 ~ /^--/ ? "-l " substr($3, 3) : "-s " substr($3, 2)
  choices = $4
  value = ""
  if (gsub(/\|/, " ", choices)) value = " -xa '" choices "'"
  else if ($4 != "") value = " -r"
  printf "complete -c %s%s %s%s -d '%s'\n", name, condition, kind, value, $5
}
