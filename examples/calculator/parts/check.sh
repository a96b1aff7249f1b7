#!/bin/sh
# Compares what the program says with what it should say.
set -eu
while IFS='|' read -r expression wanted; do
    found=$(build/calc "$expression" 2>&1) || found=$(printf '%s' "$found" | sed -n 's/.*^ //p')
    test "$found" = "$wanted" || { echo "$expression is $found and not $wanted" >&2; exit 1; }
    echo "$expression = $wanted"
done <<'END'
2 * (3 + 4) - 5|9
1 / 3|0.333333333333
-(1 - 1)|0
0.1 + 0.2|0.3
1 / (2 - 2)|this divides by zero
(1|a closing bracket should be here
2 x|this character means nothing here
END
