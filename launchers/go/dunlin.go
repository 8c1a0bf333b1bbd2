// Package dunlin gives each test a Redis of its own: a world behind one server that all tests of the process share. The
// module carries the program. RunT has the form of miniredis's, and a world has its methods: most tests that use miniredis
// change only their import.
package dunlin

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Tester is what RunT needs of a *testing.T. Where Failed and Errorf are there too, a test that failed shows its last
// commands, and strict mode can fail a test.
type Tester interface {
	Fatalf(format string, arguments ...any)
	Cleanup(func())
	Logf(format string, arguments ...any)
}

// Option is how a world starts.
type Option func(*settings)

type settings struct {
	seed     int64
	commands [][]any
}

// Frozen stops the clock, so that deadlines do not drift; clients that block wait until the clock is moved.
func Frozen() Option { return commanded("DUNLIN", "FREEZE") }

// Seeded gives the world's random answers this seed.
func Seeded(seed int64) Option { return func(s *settings) { s.seed = seed } }

// Strict sets the general rules of strict mode to a level: "warn", or "error", by which a finding fails the test.
func Strict(level string) Option { return commanded("DUNLIN", "STRICT", "SET", "ALL", level) }

// Fixture loads a text, or the bytes of an RDB file.
func Fixture(data string) Option { return commanded("DUNLIN", "LOAD", data) }

func commanded(words ...any) Option {
	return func(s *settings) { s.commands = append(s.commands, words) }
}

// Server is a server, and as a World the world in which its clients begin. On the server that DUNLIN_URL names it is a world
// of its own, so that nobody meets the others' data.
type Server struct {
	*World
	child *child
	lobby *pool  // the connections that no world has at the moment
	home  string // the world in which those are
}

// Start starts a server with directives of redis-server's command line: Start("--maxmemory", "10mb"). Where the variable
// DUNLIN_URL names a server that runs, Start without directives starts none, and makes a world there.
func Start(directives ...string) (*Server, error) {
	s := &Server{}
	given := os.Getenv("DUNLIN_URL")
	if given == "" || len(directives) > 0 {
		c, err := launch(directives)
		if err != nil {
			return nil, err
		}
		s.child, given = c, c.URL
	}
	place, err := addressOf(given)
	if err != nil {
		s.Close()
		return nil, err
	}
	s.lobby = &pool{address: place}
	found, err := s.lobby.call(0, patience, []any{"DUNLIN", "WORLD"})
	if err != nil {
		s.Close()
		var refused CommandError
		if s.child == nil && errors.As(err, &refused) {
			err = fmt.Errorf("dunlin: the server at DUNLIN_URL (%s) has no test kit (%w); start it with 'dunlin --test-kit yes'", given, err)
		}
		return nil, err
	}
	s.home = text(found[0])
	if s.child == nil {
		s.World, err = s.NewWorld()
	} else {
		s.World = &World{server: s, pool: s.lobby, port: place.port(), name: s.home}
		s.World.RedisDB = &RedisDB{world: s.World}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends a server that Start has started, and the world of one that has run before.
func (s *Server) Close() {
	if s.World != nil && s.child == nil {
		s.World.end()
	}
	if s.lobby != nil {
		for _, c := range s.lobby.drain() {
			c.Close()
		}
	}
	if s.child != nil {
		s.child.end(5 * time.Second)
	}
}

// Pid is the process's number; it is 0 where the server is not our own.
func (s *Server) Pid() int {
	if s.child == nil {
		return 0
	}
	return s.child.Pid
}

// PageURL is the link to the page, with its token, of a server that was started with "--page-port", "0"; otherwise it is
// empty.
func (s *Server) PageURL() string {
	if s.child == nil {
		return ""
	}
	return s.child.Page
}

// Log is the last that the server has written to its log.
func (s *Server) Log() string {
	if s.child == nil {
		return ""
	}
	return s.child.log.String()
}

// NewWorld makes a world of its own, with nobody else in it. Close ends it.
func (s *Server) NewWorld(options ...Option) (*World, error) {
	w := newWorld(options)
	return w, w.enter(s)
}

var shared struct {
	sync.Mutex
	*Server
}

// Shared is the server that all worlds of this process share. It starts with the first call, or the first one after Close,
// and ends with the process.
func Shared() (*Server, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.Server == nil || shared.lobby.isClosed() {
		server, err := Start()
		if err != nil {
			return nil, err
		}
		shared.Server = server
	}
	return shared.Server, nil
}

// World is a private Redis: keys, channels, scripts, settings, users and a clock that nobody else has.
type World struct {
	*RedisDB // the database of the direct methods, which Select chooses
	server   *Server
	pool     *pool
	name     string
	options  []Option
	seed     int64
	tester   Tester

	mutex       sync.Mutex
	host        string // of the address that somebody chose, which door serves
	port        int
	door        *door
	subscribers []*Subscriber
	users       map[string]string
	kept        *kept
}

// Run makes a world. Close ends it.
func Run(options ...Option) (*World, error) {
	w := newWorld(options)
	return w, w.Start()
}

// RunT makes a world for one test, and ends it with the test.
func RunT(t Tester, options ...Option) *World {
	if h, is := t.(interface{ Helper() }); is {
		h.Helper()
	}
	w, err := Run(options...)
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	w.tester = t
	t.Cleanup(func() {
		defer w.end()
		w.judge()
	})
	return w
}

func newWorld(options []Option) *World {
	w := &World{options: options}
	w.RedisDB = &RedisDB{world: w}
	return w
}

// enter creates the world with a connection that the server has idle.
func (w *World) enter(s *Server) error {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	given := settings{seed: int64(binary.LittleEndian.Uint32(random))}
	if wanted := os.Getenv("DUNLIN_SEED"); wanted != "" {
		fixed, err := strconv.ParseInt(wanted, 10, 64)
		if err != nil {
			return fmt.Errorf("dunlin: the variable DUNLIN_SEED must be a whole number, and not %q", wanted)
		}
		given.seed = fixed
	}
	for _, option := range w.options {
		option(&given)
	}
	name := fmt.Sprintf("w-%x", random[4:])
	entrance := [][]any{{"DUNLIN", "WORLD", name, "TEMPORARY"}}
	commands := append(entrance[:1:1], []any{"DUNLIN", "SEED", given.seed}, []any{"DUNLIN", "JOURNAL", "START"})
	commands = append(commands, given.commands...)
	if s.child != nil {
		s.child.log.cut()
	}
	c, err := s.lobby.take()
	if err != nil {
		return err
	}
	// Whatever database it had chosen is chosen in the world, too.
	replies, err := c.call(patience, commands...)
	if err = firstError(replies, err); err != nil {
		s.lobby.give(c, false)
		return err
	}
	s.lobby.lend()
	p := &pool{address: s.lobby.address, entrance: entrance}
	p.adopt(c, len(commands))
	p.give(c, true)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.server, w.name, w.seed, w.pool = s, name, given.seed, p
	return nil
}

// live is the pool of a world that has not ended.
func (w *World) live() *pool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.pool
}

// end drops the world. Its connection serves the next one.
func (w *World) end() {
	w.mutex.Lock()
	p, door, subscribers := w.pool, w.door, w.subscribers
	w.pool, w.door, w.subscribers = nil, nil, nil
	w.mutex.Unlock()
	for _, each := range subscribers {
		each.Close()
	}
	if door != nil {
		door.close()
	}
	if p == nil {
		return
	}
	drop := []any{"DUNLIN", "DROP-WORLD", w.name}
	isDropped := false
	for _, c := range p.drain() {
		if isDropped || !w.server.welcomes(c, drop) {
			c.Close()
			continue
		}
		isDropped = true
	}
	if !isDropped {
		w.server.lobby.call(0, patience, drop)
	}
}

// welcomes tells whether a connection has left the world that is dropped, and serves the next one as if nobody had used it.
func (s *Server) welcomes(c *connection, drop []any) bool {
	leave := [][]any{{"DUNLIN", "WORLD", s.home}, {"RESET"}}
	if login := s.lobby.login(); login != nil {
		leave = append(leave, login)
	}
	// Replies may be missing, as after CLIENT REPLY OFF.
	replies, err := c.call(time.Second, append(leave, drop)...)
	// A world whose last client has left is gone before it is dropped, so that may be refused.
	if err != nil || replies[0] != "OK" || firstError(replies[:len(leave)], nil) != nil {
		return false
	}
	c.database = 0
	s.lobby.adopt(c, len(leave)+1)
	s.lobby.give(c, true)
	return true
}

// judge fails the test for what strict mode has found, and shows of one that has failed what it did.
func (w *World) judge() {
	if w.live() == nil {
		return
	}
	if t, is := w.tester.(interface{ Errorf(string, ...any) }); is {
		if _, err := w.call("DUNLIN", "STRICT", "CHECK"); err != nil {
			t.Errorf("%v", err)
		}
	}
	if t, is := w.tester.(interface{ Failed() bool }); is && t.Failed() {
		w.tester.Logf("%s", w.Report())
	}
}

// Report is what helps to understand a test that has failed: the seed, the last commands, and what strict mode has found.
func (w *World) Report() string {
	lines := []string{fmt.Sprintf("dunlin: the seed was %d (DUNLIN_SEED=%d repeats it), the world %s", w.seed, w.seed, w.name)}
	if entries, err := w.Journal().entries(); err != nil {
		lines = append(lines, fmt.Sprintf("the last commands are not known: %v", err))
	} else {
		first := max(0, len(entries)-20)
		lines = append(lines, fmt.Sprintf("the last %d of %d commands:", len(entries)-first, len(entries)))
		for _, entry := range entries[first:] {
			lines = append(lines, "  "+entry.String())
		}
	}
	findings, err := w.findings()
	if err != nil {
		lines = append(lines, fmt.Sprintf("what strict mode has found is not known: %v", err))
	}
	for _, each := range findings {
		lines = append(lines, fmt.Sprintf("strict mode, %s (%s): %s", each.Rule, each.Level, each.Text))
	}
	return strings.Join(lines, "\n")
}

// Call runs any command, from a connection of the launcher, and returns a string, an int, a []any or nil.
func (w *World) Call(words ...any) (any, error) { return w.call(words...) }

func (w *World) fail(err error) {
	if w.tester == nil {
		panic(err)
	}
	w.tester.Fatalf("%v", err)
}

// Server is the server of this world.
func (w *World) Server() *Server { return w.server }

// Name is the world's name, by which redis-cli --user world.NAME comes into it.
func (w *World) Name() string { return w.name }

// URL is how a client comes into the world.
func (w *World) URL() string {
	if w.name == w.server.home {
		return w.server.lobby.url("")
	}
	return w.server.lobby.url("temporary-world." + w.name)
}

// Addr is the host and port whose clients come straight into the world, for what takes no URL.
func (w *World) Addr() string { return net.JoinHostPort(w.Host(), w.Port()) }

// Host is the host part of Addr.
func (w *World) Host() string {
	if w.host != "" {
		return w.host
	}
	host, _, err := net.SplitHostPort(w.server.lobby.place)
	if err != nil {
		return "127.0.0.1" // the server of DUNLIN_URL has a Unix socket
	}
	return host
}

// Port is the port part of Addr.
func (w *World) Port() string {
	w.mutex.Lock()
	port := w.port
	w.mutex.Unlock()
	if port == 0 {
		found, err := w.listen()
		if err != nil {
			w.fail(err)
			return ""
		}
		port = found
		w.mutex.Lock()
		w.port = port
		w.mutex.Unlock()
	}
	return strconv.Itoa(port)
}

// listen is the port that the server opens for the world.
func (w *World) listen() (int, error) {
	port, err := w.call("DUNLIN", "LISTEN", w.name)
	if err != nil {
		if about, failed := w.server.call("INFO", "cluster"); failed == nil && strings.Contains(text(about), "cluster_enabled:1") {
			err = errors.New("dunlin: a world of a cluster has no port of its own: give the client its URL(), whose user name leads into " +
				"the world on each node, as in redis.ParseClusterURL(s.URL())")
		}
		return 0, err
	}
	return number(port), nil
}

func (a address) port() int {
	_, port, _ := net.SplitHostPort(a.place)
	number, _ := strconv.Atoi(port)
	return number
}
