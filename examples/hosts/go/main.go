// Command go-host is a host in Go: one run for TEXT, with a tool that a person has to allow. LSP's framing, over pipes.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"unicode/utf16"
)

type object = map[string]any

var saveNote = json.RawMessage(`{
	"name": "save_note",
	"description": "Keep a note.",
	"inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
	"approvalMode": "always_require"
}`)

var errInterrupted = errors.New("interrupted")

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
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// converse has one run with a sidecar of its own. Ctrl-C cancels the run; a second one ends everything.
func converse(text string, h *host) error {
	command := os.Getenv("SIDECAR_COMMAND")
	if command == "" {
		command = "agent-sidecar serve --store memory"
	}
	os.Unsetenv("PYTHONPATH")
	sidecar, err := Start(strings.Fields(command), h)
	if err != nil {
		return err
	}
	defer sidecar.Close()

	block := object{"protocolVersions": []int{1}, "features": object{"hostTools": object{}, "approvals": object{}}}
	var server object
	if err := sidecar.Call("initialize", object{
		"processId":             os.Getpid(),
		"initializationOptions": object{"sidecar": block},
	}, &server); err != nil {
		return err
	}
	var created struct{ Session struct{ SessionID string } }
	if err := sidecar.Call("createSession", object{
		"model": "scripted:model.toml",
		"tools": []any{saveNote},
	}, &created); err != nil {
		return err
	}
	session := created.Session.SessionID

	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	var result struct{ Status, Text string }
	wait := sidecar.Go("run", object{"sessionId": session, "input": text})
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
	fmt.Printf("= %s: %s\n", result.Status, result.Text)
	return stopped
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
	if h.yes || h.consents(asked.Title, asked.ToolCall.Arguments) {
		kind = "allowOnce"
	}
	for _, option := range asked.Options {
		if option.Kind == kind {
			return object{"outcome": "selected", "optionId": option.OptionID}, nil
		}
	}
	return object{"outcome": "cancelled"}, nil
}

// consents asks the person. The model wrote the arguments: in ASCII, nothing in them can hide or move the cursor.
func (h *host) consents(title string, arguments json.RawMessage) bool {
	var shown strings.Builder
	for _, unit := range utf16.Encode([]rune(string(arguments))) {
		if ' ' <= unit && unit <= '~' {
			shown.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&shown, `\u%04x`, unit)
		}
	}
	h.asking.Lock()
	defer h.asking.Unlock()
	fmt.Fprintf(os.Stderr, "%s %s [y/N] ", title, shown.String())
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
		fmt.Print(event.Data.Text)
		h.midLine = true
	case "message.completed", "tool.completed", "run.completed":
		if h.midLine {
			fmt.Println()
			h.midLine = false
		}
		if event.Type == "tool.completed" {
			fmt.Printf("[%s %s]\n", event.Data.Name, event.Data.Status)
		}
	}
}
