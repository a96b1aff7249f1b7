#!/bin/sh
# Codex as a worker. It does one task, the JSON on standard input, in the current directory:
#
#     callboard work --agents 3 --worktree --timeout 30m --token-budget 20000000 -- examples/work/codex.sh
#
# All that the model read and wrote counts against the budget, what came from its cache too. Needs jq.
set -eu
last=$(mktemp)
events=$(mktemp)
trap 'rm -f "$last" "$events"' EXIT
task=$(cat)
# Of the bundle that --state-scope names: its system prompt, and what refinements say to do better.
system=$(printf '%s' "$task" | jq -r '[.bundle.prompts.system? // empty, (.bundle.context.refinements? // [])[]] | join("\n")')
# Standard input comes behind the prompt, as a block of its own.
code=0
printf '%s' "$task" | codex exec --json --sandbox workspace-write --skip-git-repo-check --output-last-message "$last" \
    ${CALLBOARD_MODEL_ID:+--model "$CALLBOARD_MODEL_ID"} \
    "${system:+$system

}Do the task that the JSON on standard input holds: its title, description and context, with what earlier attempts \
left. Change files in this directory only, run its tests, and do not commit. End with two sentences on what you did." \
    >"$events" || code=$?
cat "$events"
test $code = 0 || exit $code
jq -c -s --rawfile summary "$last" \
    '{summary: $summary, tokens: ([.[] | .usage? // empty | .input_tokens + .output_tokens] | add // 0)}' "$events"
