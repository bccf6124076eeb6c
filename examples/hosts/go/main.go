// Command go-host is a host in Go: one run for TEXT, with a tool that a person has to allow. LSP's framing, over pipes.
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
)

type object = map[string]any

var saveNote = json.RawMessage(`{
	"name": "save_note",
	"description": "Keep a note.",
	"inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
	"approvalMode": "always_require"
}`)

var (
	errInterrupted = errors.New("interrupted")
	errStranger    = errors.New("this is no agent-sidecar that speaks protocol version 1")
)

func main() {
	yes := flag.Bool("yes", false, "allow every call without a question")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go-host [--yes] TEXT")
		os.Exit(2)
	}
	err := converse(flag.Arg(0), &host{yes: *yes, person: bufio.NewReader(os.Stdin)})
	switch {
	case errors.Is(err, errInterrupted):
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, visible(err.Error(), obeyed))
		os.Exit(1)
	}
}

// converse has one run with a sidecar of its own. Ctrl-C cancels the run; a second one ends everything.
func converse(text string, h *host) error {
	command := strings.Fields(os.Getenv("SIDECAR_COMMAND"))
	if len(command) == 0 {
		command = []string{"agent-sidecar", "serve", "--store", "memory"}
	}
	os.Unsetenv("PYTHONPATH")
	sidecar, err := Start(command, h)
	if err != nil {
		return err
	}
	defer sidecar.Close()

	block := object{"protocolVersions": []int{1}, "features": object{"approvals": object{}}}
	var server struct {
		ServerInfo   struct{ Name string }
		Capabilities struct {
			Experimental struct{ Sidecar struct{ ProtocolVersion int } }
		}
	}
	if err := sidecar.Call("initialize", object{
		"processId":             os.Getpid(),
		"initializationOptions": object{"sidecar": block},
	}, &server); err != nil {
		return err
	}
	if server.ServerInfo.Name != "agent-sidecar" || server.Capabilities.Experimental.Sidecar.ProtocolVersion != 1 {
		return errStranger
	}
	session := mint()
	if err := sidecar.Call("createSession", object{
		"sessionId": session,
		"model":     "scripted:model.toml",
		"tools":     []any{saveNote},
	}, new(any)); err != nil {
		return err
	}

	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	var result struct{ Status, Text string }
	wait := sidecar.Go("run", object{"sessionId": session, "runId": mint(), "input": text})
	answered := make(chan error, 1)
	go func() { answered <- wait(&result) }()
	var stopped error
	select {
	case err = <-answered:
	case <-interrupts:
		signal.Stop(interrupts)
		stopped = errInterrupted
		sidecar.Go("cancelRun", object{"sessionId": session})
		err = <-answered
	}
	if err != nil {
		return err
	}
	fmt.Println(visible("= "+result.Status+": "+result.Text, obeyed))
	return stopped
}

// mint makes a new id. What it names can be sent again, and is carried out once.
func mint() string {
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		panic(err) // the system has no randomness
	}
	return hex.EncodeToString(id)
}

// host is the tool, the person and the screen.
type host struct {
	yes     bool
	asking  sync.Mutex // one question at a time
	person  *bufio.Reader
	midLine bool // on the screen; Notice's own
}

func (h *host) Answer(method string, params json.RawMessage) (any, *Error) {
	var asked struct {
		Name, Title string
		Arguments   struct{ Text string }
		ToolCall    struct{ Arguments json.RawMessage }
		Options     []struct{ OptionID, Kind string }
	}
	if method != "host/callTool" && method != "host/requestApproval" {
		return nil, &Error{Code: -32601, Message: method + " is not served here"}
	}
	if json.Unmarshal(params, &asked) != nil {
		return nil, &Error{Code: -32602, Message: method + " has other parameters here"}
	}
	if method == "host/callTool" {
		if asked.Name != "save_note" { // a result, too: the model is to read it
			return object{"content": "There is no tool " + asked.Name + ".", "isError": true}, nil
		}
		return object{"content": "Saved: " + asked.Arguments.Text + "."}, nil
	}
	kind := "rejectOnce"
	if h.yes || h.consents(asked.Title+" "+string(asked.ToolCall.Arguments)) {
		kind = "allowOnce"
	}
	for _, option := range asked.Options {
		if option.Kind == kind {
			return object{"outcome": "selected", "optionId": option.OptionID}, nil
		}
	}
	return object{"outcome": "cancelled"}, nil
}

// consents asks the person about a call.
func (h *host) consents(call string) bool {
	h.asking.Lock()
	defer h.asking.Unlock()
	fmt.Fprint(os.Stderr, visible(call, notASCII), " [y/N] ")
	said, _ := h.person.ReadString('\n') // the end of the input is no consent
	return strings.TrimSpace(said) == "y"
}

// Notice prints what happens in the run. What it does not know, it leaves out.
func (h *host) Notice(method string, params json.RawMessage) {
	var event struct {
		Type string
		Data struct{ Text, Name, Status any } // any: in an unknown event they may be anything
	}
	if method != "run/event" || json.Unmarshal(params, &event) != nil {
		return
	}
	switch event.Type {
	case "message.delta":
		fmt.Print(visible(fmt.Sprint(event.Data.Text), obeyed))
		h.midLine = true
	case "message.completed", "tool.completed", "run.completed":
		if h.midLine {
			fmt.Println()
			h.midLine = false
		}
		if event.Type == "tool.completed" {
			fmt.Println(visible(fmt.Sprintf("[%s %s]", event.Data.Name, event.Data.Status), obeyed))
		}
	}
}

// visible shows what is hidden by its number. What a model wrote is data: none of it may hide, or move the cursor.
func visible(text string, hidden func(r rune) bool) string {
	var shown strings.Builder
	for _, r := range text {
		if !hidden(r) {
			shown.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&shown, `\u%04x`, unit)
		}
	}
	return shown.String()
}

// obeyed tells what a terminal obeys, or does not show: controls, directions, what has no width.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// notASCII tells what could look like something else to a person who consents.
func notASCII(r rune) bool { return r < ' ' || '~' < r }
