//go:build unix

package tests

// That a world meets nothing of the one before it, and that the launcher's connections may be lost.

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"dunlin"
)

// worldsOf are the names of the worlds of a server.
func worldsOf(t *testing.T, server *dunlin.Server) string {
	t.Helper()
	found, err := server.Call("DUNLIN", "WORLDS")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, each := range found.([]any) {
		names = append(names, told(each.([]any)[1]))
	}
	return strings.Join(names, " ")
}

func TestAWorldMeetsNothingOfTheOneBefore(t *testing.T) {
	for _, directives := range [][]string{{"--databases", "16"}, {"--requirepass", "secret"}} {
		server, err := dunlin.Start(directives...)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		l := line{t}
		for _, left := range [][]any{{"MULTI"}, {"SELECT", 3}, {"SUBSCRIBE", "news"}, {"AUTH", "bob", "any"}, {"CLIENT", "SETNAME", "bob"}} {
			one, err := server.NewWorld()
			l.is(told(err), nil)
			one.Call("ACL", "SETUSER", "bob", "on", "nopass", "+@all", "~*")
			one.DB(2).Set("k", "v")
			one.Call(left...)
			one.Close()
			l.is(worldsOf(t, server), server.Name())
			next, err := server.NewWorld()
			l.is(told(err, next.Set("k", "v")), nil, nil)
			l.is(told(next.Dump()), "SELECT 0\nSET k v\n")
			user, err := next.Call("ACL", "WHOAMI")
			name, failed := next.Call("CLIENT", "GETNAME")
			l.is(told(user, err, name, failed), "default", nil, nil, nil)
			next.Close()
		}
	}
}

// relay leads connections to a server, until they are cut.
type relay struct {
	net.Listener
	target string
	mutex  sync.Mutex
	open   []net.Conn
	all    sync.WaitGroup
}

func relayTo(t *testing.T, target string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, target: target}
	go r.serve()
	t.Cleanup(func() { r.Close(); r.cut() })
	return r
}

func (r *relay) serve() {
	for {
		client, err := r.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			client.Close()
			continue
		}
		r.mutex.Lock()
		r.open = append(r.open, client, server)
		r.all.Add(2)
		r.mutex.Unlock()
		go func() { defer r.all.Done(); io.Copy(client, server) }()
		go func() { defer r.all.Done(); io.Copy(server, client) }()
	}
}

// cut closes all connections, which are closed when it returns.
func (r *relay) cut() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, each := range r.open {
		each.Close()
	}
	r.open = nil
	r.all.Wait()
}

func TestALostConnectionIsReplacedUnlessTheWorldHasEndedWithIt(t *testing.T) {
	real := started(t)
	relay := relayTo(t, real.Addr())
	t.Setenv("DUNLIN_URL", "redis://"+relay.Addr().String())
	server, l := started(t), line{t}
	w, err := server.NewWorld()
	l.is(told(err, w.Set("k", "v")), nil, nil)
	other, err := server.NewWorld()
	l.is(told(err), nil)
	other.Close() // its connection is idle now
	client := connect(t, w.Addr())
	l.is(client.call("PING"), "+PONG")
	relay.cut()
	l.is(told(w.Get("k")), "v", nil)
	other, err = server.NewWorld()
	l.is(told(err), nil)
	other.Close()

	client.Close()
	relay.cut()
	timeUntil(t, func() bool { return !strings.Contains(worldsOf(t, real), w.Name()) })
	for range 2 {
		begins(t, told(w.Set("k", "v")), "dunlin: the server has closed the connection: it has ended, or the world was dropped")
	}
}

func TestATestThatFailedEndsItsWorldAlsoWhereItsReportIsRefused(t *testing.T) {
	r := &tester{failed: true}
	s := dunlin.RunT(r)
	s.Call("SUBSCRIBE", "news") // after which RESP2 takes few commands
	r.cleanups[0]()
	line{t}.is(r.fatal, "")
	for _, expected := range []string{"dunlin: the seed was ", "the last commands are not known: ERR "} {
		if !strings.Contains(r.logged, expected) {
			t.Errorf("%q is not in %s", expected, r.logged)
		}
	}
	line{t}.is(told(s.Set("k", "v")), "dunlin: the world is closed")
}

func TestASeedThatIsNoNumberIsNamed(t *testing.T) {
	t.Setenv("DUNLIN_SEED", "seven")
	_, err := dunlin.Run()
	line{t}.is(told(err), `dunlin: the variable DUNLIN_SEED must be a whole number, and not "seven"`)
}

func TestTheSharedServerStartsAgainAfterItsEnd(t *testing.T) {
	onLinux(t)
	r := start(t, "again")
	if pid := r.line(); !isAlive(pid) {
		t.Errorf("said is %q", pid)
	}
	r.input.Close()
	line{t}.is(r.line(), "v")
}

func TestTheWorldOfAServerIsEndedWithItAndStartsNoOther(t *testing.T) {
	server := started(t)
	begins(t, told(server.Restart()), "dunlin: this is the world of a server, which dunlin.Start starts")
	server.World.Close()
	timeUntil(t, func() bool { return !isAlive(told(server.Pid())) })
	begins(t, told(server.Start()), "dunlin: this is the world of a server, which dunlin.Start starts")
}
