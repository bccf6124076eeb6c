package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Sidecar is a sidecar process behind two pipes. It carries messages; of their meaning it knows how to say goodbye.
type Sidecar struct {
	cmd  *exec.Cmd
	host Host
	done chan struct{} // closed when nothing more comes

	writing sync.Mutex
	in      io.WriteCloser

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan<- message // nil when nothing more comes
}

// Host is what the sidecar can reach.
type Host interface {
	// Answer serves a request. Several may be served at once.
	Answer(method string, params json.RawMessage) (any, *Error)
	// Notice hears notifications, in order, one at a time; those before an answer are heard before it is given.
	Notice(method string, params json.RawMessage)
}

// Error is an error answer.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Kind string `json:"kind"` // what to tell errors apart by
	} `json:"data"`
}

func (e *Error) Error() string { return e.Data.Kind + ": " + e.Message }

var errEnded = errors.New("the sidecar has ended")

type message struct {
	ID, Params, Result json.RawMessage
	Method             string
	Error              *Error
}

// Start starts the command as a sidecar.
func Start(command []string, host Host) (*Sidecar, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is for the host alone
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", command[0], err)
	}
	s := &Sidecar{cmd: cmd, host: host, done: make(chan struct{}), in: in, waiting: map[int]chan<- message{}}
	go s.read(out)
	return s, nil
}

// Go sends a request, and gives a function that waits for the answer and decodes it into result.
func (s *Sidecar) Go(method string, params any) (wait func(result any) error) {
	answered := make(chan message, 1)
	s.mu.Lock()
	s.lastID++
	id := s.lastID
	if s.waiting == nil {
		close(answered)
	} else {
		s.waiting[id] = answered
	}
	s.mu.Unlock()
	s.write(map[string]any{"id": id, "method": method, "params": params})
	return func(result any) error {
		m, ok := <-answered
		switch {
		case !ok:
			return errEnded
		case m.Error != nil:
			return m.Error
		}
		return json.Unmarshal(m.Result, result)
	}
}

// Call sends a request, waits for the answer and decodes it into result.
func (s *Sidecar) Call(method string, params, result any) error { return s.Go(method, params)(result) }

// Close ends the sidecar in good order, or by force after five seconds.
func (s *Sidecar) Close() error {
	defer time.AfterFunc(5*time.Second, func() { s.cmd.Process.Kill() }).Stop()
	var null any
	if s.Call("shutdown", struct{}{}, &null) == nil {
		s.write(map[string]any{"method": "exit"})
	}
	s.in.Close()
	<-s.done // Wait closes the pipe that is read
	return s.cmd.Wait()
}

// read hands out what comes. It never writes: were the pipe to the sidecar full, this one must be read all the same.
func (s *Sidecar) read(out io.Reader) {
	defer s.end()
	for r := textproto.NewReader(bufio.NewReader(out)); ; {
		header, err := r.ReadMIMEHeader()
		if err != nil {
			return
		}
		length, err := strconv.ParseUint(header.Get("Content-Length"), 10, 31)
		if err != nil {
			return
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(r.R, body); err != nil {
			return
		}
		var m message
		if json.Unmarshal(body, &m) != nil {
			return
		}
		switch {
		case m.Method == "":
			s.deliver(m)
		case m.ID == nil:
			s.host.Notice(m.Method, m.Params)
		default:
			go s.answer(m)
		}
	}
}

func (s *Sidecar) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, answered := range s.waiting {
		close(answered)
	}
	s.waiting = nil
	close(s.done)
}

func (s *Sidecar) deliver(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := strconv.Atoi(string(m.ID))
	if answered, ok := s.waiting[id]; ok && err == nil {
		delete(s.waiting, id)
		answered <- m
	}
}

func (s *Sidecar) answer(m message) {
	result, err := s.host.Answer(m.Method, m.Params)
	if err != nil {
		s.write(map[string]any{"id": m.ID, "error": err})
	} else {
		s.write(map[string]any{"id": m.ID, "result": result})
	}
}

// write sends a message. One that cannot be sent is for a sidecar that has ended, and read notices that.
func (s *Sidecar) write(m map[string]any) {
	m["jsonrpc"] = "2.0"
	body, err := json.Marshal(m)
	if err != nil {
		panic(err) // not of a host's making: parameters are data
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	fmt.Fprintf(s.in, "Content-Length: %d\r\n\r\n%s", len(body), body)
}
