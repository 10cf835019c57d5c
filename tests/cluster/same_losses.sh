# shellcheck shell=bash
# Sourced by tests that train the digits example in two ways.

losses_in() { grep -oE '"loss": *[-+.0-9e]+' "$1" | grep -oE '[-+.0-9e]+$'; }

# same_losses EPOCHS FILE FILE: of that many epochs; the same but for the order in which gradients
# are added up.
same_losses() {
  paste <(losses_in "$2") <(losses_in "$3") | awk -v wanted="$1" '
    function abs(x) { return x < 0 ? -x : x }
    {
      epochs++
      difference = abs($1 - $2) / abs($1)
      if (difference > worst) worst = difference
    }
    END {
      printf "digits: %d epochs, worst relative difference of the losses %g\n", epochs, worst
      exit !(epochs == wanted && worst <= 1e-5)
    }'
}
