package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server that this program started.
type process struct {
	command
	address string // host:port
	startUp time.Duration
	cmd     *exec.Cmd
	stdin   io.Closer // a role ends when it is closed
	log     *os.File
	ended   chan struct{} // closed once err is set
	err     error
}

// command is how to start a server at an address.
type command struct {
	name, binary string
	authority    string // the file of a certificate that the process trusts, or ""
	args         func(address string) []string
}

// role is this program as a server of its own process.
func role(name string, args ...string) (command, error) {
	self, err := os.Executable()
	return command{name: name, binary: self, args: func(address string) []string {
		return append([]string{"role", name, address}, args...)
	}}, err
}

// start runs c on a free port and returns once it has answered a request in
// full. Its output goes to a file, and into the error if it fails.
func start(ctx context.Context, c command) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp("", "load-*.log")
	if err != nil {
		return nil, err
	}
	p := &process{command: c, address: address, log: log, ended: make(chan struct{})}
	p.cmd = exec.Command(c.binary, c.args(address)...)
	if p.cmd.Env = environment(); c.authority != "" {
		p.cmd.Env = append(p.cmd.Env, "SSL_CERT_FILE="+c.authority)
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		began := time.Now()
		if err = p.cmd.Start(); err == nil {
			go func() {
				p.err = p.cmd.Wait()
				close(p.ended)
			}()
			err = p.awaitAnswer(ctx)
			p.startUp = time.Since(began)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not start: %w\n%s", c.name, err, p.output()), p.stop())
	}
	return p, nil
}

// startTimeout bounds the time from exec to the first answer.
const startTimeout = 20 * time.Second

func (p *process) awaitAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c := newClient()
	defer c.close()
	for {
		_, err := c.do(ctx, p.address, &wholeAnswer, 0, nil, nil)
		var refused *net.OpError
		if err == nil || !errors.As(err, &refused) || refused.Op != "dial" {
			return err
		}
		select {
		case <-p.ended:
			return fmt.Errorf("it ended: %v", p.err)
		case <-ctx.Done():
			return err
		case <-time.After(500 * time.Microsecond):
		}
	}
}

// stopTimeout is how long a server may take to end.
const stopTimeout = 15 * time.Second

// stop ends the process and removes its output. It may be called once.
func (p *process) stop() error {
	defer os.Remove(p.log.Name())
	defer p.log.Close()
	if p.cmd.Process == nil {
		return nil
	}
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %v after SIGTERM", p.name, stopTimeout)
	}
}

// output returns the end of what the process wrote.
func (p *process) output() string {
	b, _ := os.ReadFile(p.log.Name())
	return string(b[max(0, len(b)-2000):])
}

// resident returns the physical memory of the process in bytes. It fails where
// there is no /proc.
func (p *process) resident() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return residentIn(string(b))
}

// residentIn reads VmRSS, which is in kilobytes, from a /proc/PID/status.
func residentIn(status string) (int64, error) {
	_, rest, _ := strings.Cut(status, "VmRSS:")
	line, _, _ := strings.Cut(rest, "\n")
	kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	return kb << 10, err
}

// freeAddress returns an address of this machine on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// environment leaves out the variables that would make a server send traces, or
// log and collect in another way than by default.
func environment() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OTEL_") && !strings.HasPrefix(v, "TOOLMEND_") && !strings.HasPrefix(v, "GOGC=") &&
			!strings.HasPrefix(v, "GOMEMLIMIT=") && !strings.HasPrefix(v, "GODEBUG=") {
			env = append(env, v)
		}
	}
	return env
}
