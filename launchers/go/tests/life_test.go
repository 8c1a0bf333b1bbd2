//go:build unix

package tests

// How the program is found and started, and that it never outlives the tests.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dunlin"
)

// TestMain lets this program also be the runner that a test starts and ends.
func TestMain(m *testing.M) {
	role := os.Getenv("DUNLIN_TEST_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	server, err := dunlin.Shared()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if role == "again" {
		server.Close()
		server, err = dunlin.Shared()
	}
	fmt.Println(server.Pid(), err)
	if role == "child" {
		if err := exec.Command("sleep", "20").Start(); err != nil {
			fmt.Println(err)
		}
	}
	io.Copy(io.Discard, os.Stdin)
	server.Set("k", "v")
	fmt.Println(server.Get("k"))
}

// runner is a process with a server.
type runner struct {
	*exec.Cmd
	input  io.Closer
	output *bufio.Reader
}

func start(t *testing.T, role string, environment ...string) *runner {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "DUNLIN_TEST_ROLE="+role)
	if environment != nil {
		command.Env = append(environment, "DUNLIN_TEST_ROLE="+role)
	}
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); command.Wait() })
	return &runner{command, input, bufio.NewReader(output)}
}

func (r *runner) line() string {
	text, _ := r.output.ReadString('\n')
	return strings.TrimSuffix(strings.TrimSpace(text), " <nil>")
}

func isAlive(pid string) bool {
	status, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(status), ") Z ")
}

// timeUntil looks again and again, as nobody tells of the end of another's child.
func timeUntil(t *testing.T, isDone func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !isDone() {
		if time.Since(begin) > soon {
			t.Fatal("it never was")
		}
		runtime.Gosched()
	}
	return time.Since(begin)
}

func onLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it looks into /proc")
	}
}

// asked is how many rounds the environment asks for, or else the number that is given.
func asked(otherwise int) (rounds int, isAsked bool) {
	if rounds, err := strconv.Atoi(os.Getenv("DUNLIN_TEST_KILLS")); err == nil {
		return rounds, true
	}
	return otherwise, false
}

func TestAKilledRunnerLeavesNoServer(t *testing.T) {
	onLinux(t)
	// Where a thousand are asked for, each server must be gone in time, which a machine that does much else may not do.
	rounds, limited := asked(20)
	var times []time.Duration
	for range rounds {
		r := start(t, "runner")
		pid := r.line()
		if !isAlive(pid) {
			t.Fatalf("there is no server, but %q", pid)
		}
		r.Process.Kill()
		r.Process.Wait()
		times = append(times, timeUntil(t, func() bool { return !isAlive(pid) }))
	}
	slices.Sort(times)
	most := times[rounds-1]
	t.Logf("gone after %v, at most %v", times[rounds/2], most)
	if times[0] > 100*time.Millisecond || limited && most > 100*time.Millisecond {
		t.Errorf("%d servers were gone after %v, at most %v", rounds, times[rounds/2], most)
	}
}

func TestAProcessThatTheRunnerStartedKeepsNoServerAlive(t *testing.T) {
	onLinux(t)
	r := start(t, "child")
	pid := r.line()
	r.Process.Kill()
	timeUntil(t, func() bool { return !isAlive(pid) })
}

// childrenOf are the processes with a mark in their environment, less the one that was given it.
func childrenOf(r *runner, mark string) (found []int) {
	all, _ := os.ReadDir("/proc")
	for _, each := range all {
		pid, err := strconv.Atoi(each.Name())
		environment, failed := os.ReadFile("/proc/" + each.Name() + "/environ")
		if err == nil && failed == nil && pid != r.Process.Pid && strings.Contains(string(environment), mark) {
			found = append(found, pid)
		}
	}
	return found
}

func TestARunnerThatIsKilledWhileItsServerStartsLeavesNone(t *testing.T) {
	onLinux(t)
	for round := range 8 {
		mark := fmt.Sprintf("DUNLIN_TEST_MARK=%d-%d", os.Getpid(), round)
		r := start(t, "runner", append(os.Environ(), mark)...)
		timeUntil(t, func() bool { return len(childrenOf(r, mark)) > 0 })
		r.Process.Kill()
		r.Process.Wait()
		timeUntil(t, func() bool { return len(childrenOf(r, mark)) == 0 })
	}
}

func TestARunnerThatEndsLeavesNoServer(t *testing.T) {
	onLinux(t)
	r := start(t, "runner")
	pid := r.line()
	r.input.Close()
	line{t}.is(r.line(), "v")
	r.Wait()
	timeUntil(t, func() bool { return !isAlive(pid) })
}

// ours are the stacks of the launcher's goroutines, and of those that it had the library of Go start.
func ours() []string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var found []string
	for _, stack := range strings.Split(string(all), "\n\n") {
		if strings.Contains(stack, "created by dunlin.") || strings.Contains(stack, "created by os/exec.") {
			found = append(found, stack)
		}
	}
	return found
}

// awaitNoGoroutine waits for those that have done their work and only have to end.
func awaitNoGoroutine(t *testing.T) {
	t.Helper()
	for begin := time.Now(); ; runtime.Gosched() {
		left := ours()
		if len(left) == 0 {
			return
		}
		if time.Since(begin) > time.Second {
			t.Fatal(strings.Join(left, "\n\n"))
		}
	}
}

func TestAServerThatRunsNeedsNoGoroutine(t *testing.T) {
	server := started(t)
	server.Set("k", "v")
	awaitNoGoroutine(t)
	if !strings.Contains(server.Log(), "Server initialized") {
		t.Errorf("the log of a server that runs is %q", server.Log())
	}
}

func TestNoGoroutineIsLeftByWhatWasClosed(t *testing.T) {
	server := started(t)
	for range 3 {
		w, err := server.NewWorld()
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		if err := w.StartAddr("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		c := connect(t, w.Addr())
		line{t}.is(c.call("SET k v"), "+OK")
		c.send("BLPOP queue 0")
		w.Close()
	}
	server.Close()
	awaitNoGoroutine(t)
}

func TestCtrlCReachesOnlyTheRunner(t *testing.T) {
	server := started(t)
	group, err := syscall.Getpgid(server.Pid())
	if err != nil || group == syscall.Getpgrp() {
		t.Errorf("the server is in the group %d (%v)", group, err)
	}
}

func TestAServerStartsWithoutAHomeAndWithoutAFolderToWriteIn(t *testing.T) {
	onLinux(t)
	r := start(t, "runner", "TMPDIR=/dev/null/nothing")
	if pid := r.line(); !isAlive(pid) {
		t.Errorf("said is %q", pid)
	}
	home := t.TempDir()
	r = start(t, "runner", "TMPDIR="+home, "HOME=/dev/null/nothing")
	if pid := r.line(); !isAlive(pid) {
		t.Errorf("said is %q", pid)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) != 0 {
		t.Errorf("left is %v (%v)", left, err)
	}
}

func TestEightProcessesUnpackTheProgramAtOnce(t *testing.T) {
	onLinux(t)
	rounds, _ := asked(3)
	for range min(rounds, 50) {
		home := t.TempDir()
		var all sync.WaitGroup
		for range 8 {
			r := start(t, "runner", "HOME="+home, "TMPDIR=/dev/null/nothing")
			all.Add(1)
			go func() {
				defer all.Done()
				if pid := r.line(); !isAlive(pid) {
					t.Errorf("said is %q", pid)
				}
			}()
		}
		all.Wait()
		left, err := filepath.Glob(home + "/.cache/dunlin/*")
		if err != nil || len(left) != 1 {
			t.Errorf("unpacked are %v (%v)", left, err)
		}
	}
}

// unpacked is a home whose cache has the program, and the path of that.
func unpacked(t *testing.T) (home, program string) {
	t.Helper()
	home = t.TempDir()
	r := start(t, "runner", "HOME="+home, "TMPDIR=/dev/null/nothing")
	r.line()
	found, err := filepath.Glob(home + "/.cache/dunlin/*")
	if err != nil || len(found) != 1 {
		t.Fatalf("unpacked are %v (%v)", found, err)
	}
	return home, found[0]
}

// replace puts a program of the same size in the place of another one; when it runs, it leaves a file beside itself.
func replace(t *testing.T, program string) {
	t.Helper()
	was, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\ntouch " + program + ".ran\nexit 1\n"
	text += strings.Repeat("#", int(was.Size())-len(text))
	if err := errors.Join(os.Remove(program), os.WriteFile(program, []byte(text), 0o700)); err != nil {
		t.Fatal(err)
	}
}

func TestAProgramThatOthersCouldHaveReplacedIsNotRun(t *testing.T) {
	onLinux(t)
	for _, opened := range []string{"folder", "program"} {
		home, program := unpacked(t)
		replace(t, program)
		path := program
		if opened == "folder" {
			path = filepath.Dir(program)
		}
		if err := os.Chmod(path, 0o720); err != nil {
			t.Fatal(err)
		}
		r := start(t, "runner", "HOME="+home, "TMPDIR="+t.TempDir())
		if pid := r.line(); !isAlive(pid) {
			t.Errorf("said is %q", pid)
		}
		if _, err := os.Stat(program + ".ran"); err == nil {
			t.Errorf("it ran, though others can write the %s", opened)
		}
	}
}

func TestAProgramThatALinkOfAnotherUserLeadsToIsNotRun(t *testing.T) {
	onLinux(t)
	home, program := unpacked(t)
	replace(t, program)
	folder := filepath.Dir(program)
	if err := errors.Join(os.Rename(folder, folder+"-elsewhere"), os.Symlink(folder+"-elsewhere", folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(folder, 1, 1); err != nil {
		t.Skip("only root can give a link away")
	}
	r := start(t, "runner", "HOME="+home)
	if pid := r.line(); !isAlive(pid) {
		t.Errorf("said is %q", pid)
	}
}

func TestAFolderThatOthersCanWriteInIsRefusedByName(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("DUNLIN_CACHE", folder)
	started(t).Close()
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	server, err := dunlin.Start()
	if err == nil {
		server.Close()
	}
	begins(t, fmt.Sprint(err), "dunlin: the program of the module cannot be unpacked and run anywhere (others can write in "+folder+
		", so a program there could be theirs); set DUNLIN_CACHE to a folder where only you can write")
}

// refusal is the error of a start with a program in the place of dunlin.
func refusal(t *testing.T, program string, directives ...string) string {
	t.Helper()
	t.Setenv("DUNLIN_BINARY", program)
	server, err := dunlin.Start(directives...)
	if err == nil {
		server.Close()
		t.Fatal("it has started")
	}
	return err.Error()
}

func script(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dunlin")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func begins(t *testing.T, text, expected string) {
	t.Helper()
	if !strings.HasPrefix(text, expected) {
		t.Errorf("%q does not begin with %q", text, expected)
	}
}

func TestAVariableThatNamesNoProgramIsNamed(t *testing.T) {
	begins(t, refusal(t, "/nowhere/dunlin"), "dunlin: there is no program at /nowhere/dunlin, which the variable DUNLIN_BINARY names; set it")
}

func TestNoProgramOfPathIsTaken(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(script(t, "exit 1"))+":"+os.Getenv("PATH"))
	begins(t, refusal(t, "dunlin"), "dunlin: there is no program at /")
}

func TestAFileThatIsNoProgramIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dunlin")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	begins(t, refusal(t, path), "dunlin: cannot run "+path+", which the variable DUNLIN_BINARY names: ")
}

func TestAnotherVersionIsRefusedByName(t *testing.T) {
	path := script(t, `echo '{"dunlin":"9.9.9","url":"redis://127.0.0.1:1"}'; exec cat`)
	begins(t, refusal(t, path), "dunlin: "+path+" is dunlin 9.9.9, but this module needs dunlin ")
}

func TestAProgramThatDoesNotAnnounceSaysWhatItIs(t *testing.T) {
	said := refusal(t, script(t, `[ "$1" = --version ] && echo Redis server v=7 || echo bad directive >&2; exit 1`))
	if !strings.Contains(said, "says it is: Redis server v=7") || !strings.HasSuffix(said, "\n  bad directive") {
		t.Error(said)
	}
}

func TestAProgramThatSaysNothingIsGivenUp(t *testing.T) {
	t.Parallel() // it takes ten seconds
	silent := script(t, `[ "$1" = --version ] || { echo starting >&2; exec cat; }`)
	r := start(t, "runner", append(os.Environ(), "DUNLIN_BINARY="+silent)...)
	begins(t, r.line(), "dunlin: "+silent+" did not announce a server within 10s; this module needs dunlin ")
	if last := r.line(); last != "starting" {
		t.Errorf("the last line of its log is %q", last)
	}
}

// started is a server that ends with the test.
func started(t *testing.T) *dunlin.Server {
	t.Helper()
	server, err := dunlin.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

func TestAnAnnouncementThatComesByteByByteIsRead(t *testing.T) {
	real := started(t)
	text := fmt.Sprintf(`{"dunlin":"%s","pid":1,"url":"%s"}`, os.Getenv("DUNLIN_TEST_VERSION"), real.URL())
	t.Setenv("DUNLIN_BINARY", script(t, "printf '%s' '"+text+"' | dd bs=1 2>/dev/null; echo; exec cat"))
	server := started(t)
	line{t}.is(server.Addr(), real.Addr())
}

func TestADirectiveThatDoesNotExistIsToldInTheWordsOfTheServer(t *testing.T) {
	server, err := dunlin.Start("--no-such", "1")
	if err == nil {
		server.Close()
	}
	if said := fmt.Sprint(err); !strings.Contains(said, "could not start: ") || !strings.Contains(said, "Bad directive") {
		t.Error(said)
	}
}

func TestThePageHasALinkWithItsTokenWhereItIsServed(t *testing.T) {
	server, err := dunlin.Start("--page-port", "0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	link, token, _ := strings.Cut(server.PageURL(), "#token=")
	asked, err := http.NewRequest("POST", link+"command", strings.NewReader(`{"commands":[["PING"]]}`))
	if err != nil {
		t.Fatal(err)
	}
	asked.Header = http.Header{"X-Dunlin": {token}, "Content-Type": {"application/json"}}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	line{t}.is(told(string(said), err), `{"replies":[{"status":"PONG"}]}`, nil)
	line{t}.is(started(t).PageURL(), "")
}

// logBytes is how large the logs are that this process has in memory.
func logBytes() (sum int64) {
	all, _ := filepath.Glob("/proc/self/fd/*")
	for _, each := range all {
		if name, err := os.Readlink(each); err == nil && strings.HasPrefix(name, "/memfd:dunlin-log") {
			if found, err := os.Stat(each); err == nil {
				sum += found.Size()
			}
		}
	}
	return sum
}

func TestALogThatHasGrownIsCutAndGoesOn(t *testing.T) {
	onLinux(t)
	server, err := dunlin.Start("--enable-debug-command", "yes")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for range 6 {
		if _, err := server.Call("DEBUG", "LOG", strings.Repeat("a long line ", 1<<17)); err != nil {
			t.Fatal(err)
		}
	}
	if full := logBytes(); full < 6<<20 {
		t.Errorf("the log has only %d bytes", full)
	}
	w, err := server.NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if cut := logBytes(); cut > 1<<20 {
		t.Errorf("the log has still %d bytes", cut)
	}
	server.Call("DEBUG", "LOG", "the next line")
	if last := server.Log(); !strings.HasSuffix(last, "the next line") || strings.Contains(last, "\x00") {
		t.Errorf("its end is %q", last[max(0, len(last)-200):])
	}
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	server := started(t)
	other, err := dunlin.Start("--port", server.Port())
	if err == nil {
		other.Close()
	}
	if said := fmt.Sprint(err); !strings.Contains(said, server.Port()) || !strings.Contains(said, "in use") {
		t.Error(said)
	}
}

func TestAServerThatRunsIsUsed(t *testing.T) {
	real := started(t)
	t.Setenv("DUNLIN_URL", real.URL())
	t.Setenv("DUNLIN_BINARY", "/nowhere")
	server, err := dunlin.Start()
	if err != nil {
		t.Fatal(err)
	}
	l, other := line{t}, started(t)
	l.is(told(server.Set("k", "v"), server.Pid(), other.Exists("k")), nil, 0, false)
	w, err := server.NewWorld()
	l.is(told(err, w.Set("k", "w")), nil, nil)
	l.is(connect(t, w.Addr()).call("GET k"), "w")
	l.is(connect(t, server.Addr()).call("GET k"), "v")
	w.Close()
	server.Close()
	other.Close()
	l.is(worldsOf(t, real), real.Name())
	t.Setenv("DUNLIN_URL", "http://x")
	_, err = dunlin.Start()
	begins(t, fmt.Sprint(err), `dunlin: "http://x" is no address of a server; it should be like redis://`)
	t.Setenv("DUNLIN_URL", "redis://127.0.0.1:1")
	_, err = dunlin.Start()
	begins(t, fmt.Sprint(err), "dunlin: no server answers at redis://127.0.0.1:1: ")
}

func TestAServerWithoutTheTestKitIsRefused(t *testing.T) {
	plain, err := dunlin.Start("--test-kit", "no")
	if err == nil {
		plain.Close()
	}
	begins(t, fmt.Sprint(err), "ERR unknown command 'DUNLIN'")
}

func TestAServerEndsWhileAClientWaits(t *testing.T) {
	server, err := dunlin.Start()
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, server.Addr())
	c.send("BLPOP queue 0")
	if err := server.WaitUntilBlocked("queue", 1, soon); err != nil {
		t.Error(err)
	}
	begin := time.Now()
	server.Close()
	server.Close()
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %v", took)
	}
	line{t}.is(c.reply(), "closed")
}
