#!/bin/sh
# A host with one tool, one context provider and a person to ask. One run for each argument; POSIX shell and jq.
set -eu
cd "$(dirname "$0")"
unset PYTHONPATH

pipes=$(mktemp -d)
trap 'rm -rf "$pipes"' EXIT
mkfifo "$pipes/in" "$pipes/out"
agent-sidecar serve --store memory <"$pipes/in" >"$pipes/out" &
exec 3>"$pipes/in" 4<"$pipes/out"

# request ID METHOD PARAMS [JQ ARGUMENTS]: PARAMS is a jq expression.
request() {
  id=$1 method=$2 params=$3
  shift 3
  jq -nc --argjson id "$id" --arg method "$method" "$@" '{jsonrpc: "2.0", $id, $method, params: '"$params"'}' >&3
}

# answer RESULT: answers the request in $line; RESULT is a jq expression over it.
answer() {
  printf '%s\n' "$line" | jq -c '{jsonrpc: "2.0", id, result: ('"$1"')}' >&3
}

# consent: asks the person about the call in $line. -a: the model wrote the arguments, and nothing in them may hide.
consent() {
  title=$(printf '%s\n' "$line" | jq -r .params.title)
  arguments=$(printf '%s\n' "$line" | jq -ac .params.toolCall.arguments)
  printf '%s %s [y/N] ' "$title" "$arguments" >&2
  said=
  read -r said || true # the end of the input is no consent
  case $said in
    y) kind=allowOnce ;;
    *) kind=rejectOnce ;;
  esac
  answer '{outcome: "selected", optionId: (first(.params.options[] | select(.kind == "'"$kind"'")) | .optionId)}'
}

# await ID: answers what the sidecar asks, until it answers request ID; its text, if it has one, is printed.
await() {
  while IFS= read -r line <&4; do
    case $(printf '%s\n' "$line" | jq -r 'if .method and .id then .method elif .method then "notification" else .id end') in
      host/beforeRun) answer '{instructions: "You help Ada; visit \((.params.state.visits // 0) + 1)."}' ;;
      host/afterRun) answer 'if .params.error then {} else {state: {visits: ((.params.state.visits // 0) + 1)}} end' ;;
      host/callTool)
        tickets=$((tickets + 1))
        answer '{content: "Ticket '"$tickets"' is open: \(.params.arguments.title)"}'
        ;;
      host/requestApproval) consent ;;
      notification) ;;
      "$1")
        printf '%s\n' "$line" | jq -er 'if .error then error(.error.message) else .result.text // empty end' || [ $? -eq 4 ]
        return
        ;;
      *) printf '%s\n' "$line" | jq -c '{jsonrpc: "2.0", id, error: {code: -32601, message: "not served here"}}' >&3 ;;
    esac
  done
  echo "the sidecar has gone" >&2
  exit 1
}

tickets=0
request 1 initialize '{initializationOptions: {sidecar: {protocolVersions: [1], features: {approvals: {}}}}}'
await 1
request 2 createSession '{
  sessionId: "s",
  model: "scripted:model.toml",
  tools: [{
    name: "open_ticket",
    description: "Open a ticket.",
    inputSchema: {type: "object", properties: {title: {type: "string"}}, required: ["title"]},
    approvalMode: "always_require"
  }],
  contextProviders: [{type: "host", sourceId: "desk"}]
}'
await 2
number=2
for text; do
  number=$((number + 1))
  request "$number" run '{sessionId: "s", input: $text, stream: false}' --arg text "$text"
  await "$number"
done
exec 3>&-
wait
