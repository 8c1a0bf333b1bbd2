package dunlin

// The program as a child process: where it is, how it starts, and how it ends. The child reads a pipe whose other end is
// here, and ends when that closes, which the system does however this process ends.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startPatience is how long the program may take until it serves clients.
var startPatience = 10 * time.Second

// versionPatience is how long a program may take to say its version, for the text of an error.
const versionPatience = 2 * time.Second

type announcement struct {
	Version *string `json:"dunlin"`
	Pid     int     `json:"pid"`
	URL     string  `json:"url"`
	Page    string  `json:"page"`
	Error   string  `json:"error"`
}

type child struct {
	announcement
	command *exec.Cmd
	input   io.Closer
	log     *logFile
	clear   func() // removes what was unpacked, again after the end: Windows keeps the file of a program that runs
	ending  sync.Once
}

// launch starts the program with directives of redis-server's command line.
func launch(directives []string) (*child, error) {
	if named := os.Getenv("DUNLIN_BINARY"); named != "" {
		if whole, err := filepath.Abs(named); err == nil {
			named = whole // a bare name would be looked for in PATH
		}
		c, err := start(named, directives)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("dunlin: there is no program at %s, which the variable DUNLIN_BINARY names; set it to the path "+
				"of a dunlin program, or unset it to use the one of the module", named)
		} else if isForbidden(err) {
			return nil, fmt.Errorf("dunlin: cannot run %s, which the variable DUNLIN_BINARY names: %w", named, err)
		}
		return c, err
	}
	return launchCarried(directives)
}

// launchCarried starts the program of the module, in the first place that can hold it and run it.
func launchCarried(directives []string) (*child, error) {
	if carried.packed == nil {
		return nil, fmt.Errorf("dunlin: there is no program: the variable DUNLIN_BINARY is not set, and %w, or set DUNLIN_BINARY to "+
			"the path of a dunlin program", errNotCarried())
	}
	var refusals []string
	for _, unpack := range places() {
		path, clear, err := unpack()
		if err == nil {
			var c *child
			c, err = start(path, directives)
			clear()
			if c != nil {
				c.clear = clear
			}
			if err == nil || !isForbidden(err) {
				return c, err
			}
		}
		refusals = append(refusals, err.Error())
	}
	return nil, fmt.Errorf("%w, or DUNLIN_BINARY to the path of a dunlin program", errNowhere(refusals))
}

func errNotCarried() error {
	return fmt.Errorf("no module dunlin/program/%s_%s is in this build; add that module", runtime.GOOS, runtime.GOARCH)
}

func errNowhere(refusals []string) error {
	return fmt.Errorf("dunlin: the program of the module cannot be unpacked and run anywhere (%s); set DUNLIN_CACHE to a folder "+
		"where only you can write and programs can run", strings.Join(refusals, "; "))
}

// Exec puts the program of the module in the place of this process, as the command dunlin does: its signals and its exit
// status are exact. It returns only if that fails.
func Exec(words ...string) error {
	if carried.packed == nil {
		return fmt.Errorf("dunlin: there is no program: %w", errNotCarried())
	}
	var refusals []string
	// Nobody would remove it from a temporary folder.
	for _, unpack := range []place{inCache, inMemory} {
		path, _, err := unpack()
		if err == nil {
			err = become(path, words)
		}
		refusals = append(refusals, err.Error())
	}
	return errNowhere(refusals)
}

// start starts a program and reads what it announces.
func start(program string, directives []string) (*child, error) {
	c := &child{log: newLog()}
	output, err := c.spawn(program, directives)
	if err != nil {
		c.log.close()
		return nil, err
	}
	said := firstLine(output)
	err = json.Unmarshal(said, &c.announcement)
	switch {
	case err != nil || (c.Version == nil && c.Error == ""):
		c.end(0)
		return nil, fmt.Errorf("dunlin: %s did not announce a server within %v; this module needs dunlin %s, and the program says "+
			"it is: %s%s", program, startPatience, version, versionOf(program), c.log)
	case c.Error != "":
		c.end(0)
		return nil, fmt.Errorf("dunlin: %s could not start: %s%s", program, c.Error, c.log)
	case version != "" && *c.Version != version:
		c.end(0)
		return nil, fmt.Errorf("dunlin: %s is dunlin %s, but this module needs dunlin %s; set DUNLIN_BINARY to that version, or "+
			"unset it to use the one of the module", program, *c.Version, version)
	}
	return c, nil
}

// spawn starts the process. It needs no goroutine while it runs: its input and output are pipes, and its log is a file.
func (c *child) spawn(program string, directives []string) (io.Reader, error) {
	words := []string{"--free-port", "yes", "--test-kit", "yes"}
	if slices.Contains(directives, "--port") {
		words = words[2:]
	}
	words = append(append(words, directives...), "--announce", "yes", "--end-with", "stdin")
	for attempt := 0; ; attempt++ {
		c.command = exec.Command(program, words...)
		if c.log.file != nil {
			c.command.Stderr = c.log.file
		}
		detach(c.command)
		input, err := c.command.StdinPipe()
		if err != nil {
			return nil, err
		}
		c.input = input
		output, err := c.command.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err = c.command.Start(); err == nil {
			return output, nil
		}
		// Another goroutine may have forked while the program was written, and have the file open until it executes.
		if !errors.Is(err, syscall.ETXTBSY) || attempt == 100 {
			return nil, err
		}
		time.Sleep(time.Millisecond)
	}
}

// firstLine is what the program writes until its first line ends, or nothing if that takes too long.
func firstLine(output io.Reader) []byte {
	line := make(chan []byte, 1)
	go func() {
		text, _ := bufio.NewReader(output).ReadBytes('\n')
		line <- text
	}()
	timer := time.NewTimer(startPatience)
	defer timer.Stop()
	select {
	case said := <-line:
		return said
	case <-timer.C:
		return nil
	}
}

func versionOf(program string) string {
	within, cancel := context.WithTimeout(context.Background(), versionPatience)
	defer cancel()
	command := exec.CommandContext(within, program, "--version")
	command.WaitDelay = versionPatience
	said, err := command.CombinedOutput()
	if text := strings.TrimSpace(string(said)); text != "" {
		return text[:min(len(text), 200)]
	}
	return fmt.Sprint(err)
}

// end ends the server, and kills it if it takes longer than that.
func (c *child) end(within time.Duration) {
	c.ending.Do(func() {
		c.input.Close()
		timer := time.AfterFunc(within, func() { c.command.Process.Kill() })
		c.command.Wait()
		timer.Stop()
		c.log.close()
		if c.clear != nil {
			c.clear()
		}
	})
}
