#!/bin/sh
# Claude Code as a worker. It does one task, the JSON on standard input, in the current directory:
#
#     callboard work --agents 3 --worktree --timeout 30m --token-budget 20000000 -- examples/work/claude.sh
#
# A conversation that was interrupted is taken up again: its id is the task's checkpoint. All that the model read and wrote
# counts against the budget, what came from its cache too, and also where it ended in an error. Needs jq.
set -eu
task=$(cat)
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

# Of the bundle that --state-scope names: its system prompt, and what refinements say to do better.
system=$(printf '%s' "$task" | jq -r '[.bundle.prompts.system? // empty, (.bundle.context.refinements? // [])[]] | join("\n")')

# The worker keeps the marked line, whatever becomes of us.
ask() {
    code=0
    printf '::callboard::checkpoint {"session": "%s"}\n' "$session"
    answer=$(printf '%s' "$task" | claude --print --output-format json --permission-mode acceptEdits \
        ${CALLBOARD_MODEL_ID:+--model "$CALLBOARD_MODEL_ID"} ${system:+--append-system-prompt "$system"} "$@" "$session" \
        "Do the task that the JSON on standard input holds: its title, description and context, with what earlier attempts \
left. Change files in this directory only, run its tests, and do not commit. End with two sentences on what you did." \
        2>"$errors") || code=$?
    cat "$errors" >&2
}

session=$(printf '%s' "$task" | jq -r '.checkpoint.session? // empty')
# Another agent may have written it: what is no id is none, and no option either.
case $session in *[!0-9a-f-]* | -*) session= ;; esac
if [ -n "$session" ]; then
    ask --resume
    # It was held on another machine, or too long ago.
    if [ $code != 0 ] && printf '%s\n' "$answer" | cat - "$errors" | grep -qi 'no conversation found'; then
        session=
    fi
fi
if [ -z "$session" ]; then
    session=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen | tr 'A-Z' 'a-z')
    ask --session-id
fi
if [ $code != 0 ]; then
    printf '%s\n' "$answer"
    exit $code
fi
# Which kind of error it was, the worker tells from the message.
printf '%s' "$answer" | jq -c '(.usage | [.input_tokens, .cache_creation_input_tokens, .cache_read_input_tokens,
    .output_tokens] | add // 0) as $tokens |
    if .is_error then {error: {message: .result}, tokens: $tokens}
    else {summary: .result, session: .session_id, tokens: $tokens} end'
test "$(printf '%s' "$answer" | jq -r '.is_error')" != true
