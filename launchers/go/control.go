package dunlin

// What miniredis has to control a server: start, close and restart, passwords, errors and counts.

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Miniredis is World under miniredis's name.
type Miniredis = World

// kept is what Restart brings back.
type kept struct {
	data string
	now  int64
}

// NewMiniRedis is a world that Start or StartAddr makes.
func NewMiniRedis() *World { return newWorld(nil) }

// Start makes the world, on a port of its own, or on the one that it had before Close.
func (w *World) Start() error {
	if w.port == 0 {
		return w.begin("", nil)
	}
	return w.begin(net.JoinHostPort(w.Host(), strconv.Itoa(w.port)), nil)
}

// Restart makes a closed world again, on the same port, with its data, its passwords and its clock.
func (w *World) Restart() error { return w.Start() }

// StartAddr makes the world behind an address such as "127.0.0.1:6379", ":6379" or "127.0.0.1:0".
func (w *World) StartAddr(addr string) error { return w.begin(addr, nil) }

// RunTLS makes a world whose address takes only TLS.
func RunTLS(config *tls.Config) (*World, error) {
	w := newWorld(nil)
	return w, w.StartTLS(config)
}

// StartTLS makes the world behind an address of the system's choice that takes only TLS.
func (w *World) StartTLS(config *tls.Config) error { return w.StartAddrTLS("127.0.0.1:0", config) }

// StartAddrTLS makes the world behind an address that takes only TLS.
func (w *World) StartAddrTLS(addr string, config *tls.Config) error { return w.begin(addr, config) }

func (w *World) begin(addr string, config *tls.Config) error {
	if w.server != nil && w.server.World == w {
		return errors.New("dunlin: this is the world of a server, which dunlin.Start starts; one of its NewWorld can be started again")
	}
	if w.live() != nil {
		return errors.New("dunlin: it runs already")
	}
	var listener net.Listener
	if addr != "" {
		var err error
		if listener, err = net.Listen("tcp", addr); err != nil {
			return fmt.Errorf("dunlin: %w", err)
		}
	}
	server, err := w.server, error(nil)
	if server == nil {
		server, err = Shared()
	}
	if err == nil {
		err = w.enter(server)
	}
	if err == nil && w.kept != nil {
		_, err = w.live().call(0, patience, []any{"DUNLIN", "LOAD", w.kept.data}, []any{"DUNLIN", "SET-TIME", w.kept.now})
		for user, password := range w.users {
			w.RequireUserAuth(user, password)
		}
	}
	port := 0
	if err == nil && listener != nil {
		port, err = w.listen()
	}
	if err != nil {
		if listener != nil {
			listener.Close()
		}
		w.end() // so that it can be started again
		return err
	}
	if listener == nil {
		return nil
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	place := listener.Addr().(*net.TCPAddr)
	w.port = place.Port
	if w.host = place.IP.String(); place.IP.IsUnspecified() {
		w.host = "127.0.0.1"
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	w.door = openDoor(listener, net.JoinHostPort(server.Host(), strconv.Itoa(port)))
	return nil
}

// Close ends the world: its port closes, and its clients are disconnected. The world of a server ends with that.
func (w *World) Close() {
	if w.server != nil && w.server.World == w {
		w.server.Close()
		return
	}
	if p := w.live(); p != nil {
		replies, err := p.call(0, patience, []any{"DUNLIN", "DUMP"}, []any{"DUNLIN", "ADVANCE", 0})
		if err == nil {
			w.kept = &kept{text(replies[0]), int64(number(replies[1]))}
		}
	}
	w.end()
}

// Dial is a connection to the world, over a real socket.
func (w *World) Dial() (net.Conn, error) { return net.DialTimeout("tcp", w.Addr(), patience) }

// RequireAuth sets the password that a client has to send first; an empty one removes it.
func (w *World) RequireAuth(password string) { w.RequireUserAuth("default", password) }

// RequireUserAuth adds a user who may do everything; without a password it removes the user. While there is any, clients
// have to log in.
func (w *World) RequireUserAuth(user, password string) {
	w.mutex.Lock()
	if w.users == nil {
		w.users = map[string]string{}
	}
	delete(w.users, user)
	if password != "" {
		w.users[user] = password
	}
	_, hasDefault := w.users["default"]
	count := len(w.users)
	w.mutex.Unlock()
	rights := []any{"ACL", "SETUSER", user, "on", "resetpass", ">" + password, "allkeys", "allchannels", "allcommands"}
	switch {
	case password != "":
		w.must(rights...)
		// A connection of ours that comes later logs in as this user.
		w.live().welcome([]any{"AUTH", user, password})
	case user != "default":
		w.must("ACL", "DELUSER", user)
	}
	if count == 0 {
		w.must("ACL", "SETUSER", "default", "on", "nopass")
		w.live().welcome(nil)
	} else if !hasDefault {
		w.must("ACL", "SETUSER", "default", "resetpass")
	}
}

// welcome sets the login of connections that come into the world from now on.
func (p *pool) welcome(login []any) {
	p.Lock()
	defer p.Unlock()
	p.entrance = p.entrance[:1:1]
	if login != nil {
		p.entrance = append(p.entrance, login)
	}
}

// SetError lets every command of a client fail with this error; an empty one ends that. Direct methods do not fail.
func (w *World) SetError(message string) {
	p := w.live()
	if p == nil {
		w.fail(errClosed)
		return
	}
	command := addError(message)
	if message == "" {
		command = removeError
	}
	if err := p.alone(command); err != nil {
		w.fail(err)
		return
	}
	p.Lock()
	p.errorForOthers = message
	p.Unlock()
}

// CommandCount is how many commands clients have sent, without direct methods.
func (w *World) CommandCount() int {
	return w.statistic("total_commands_processed", func(p *pool) int {
		later := 1 // INFO counts those before it
		if p.errorForOthers != "" {
			later++
		}
		return p.sent - later
	})
}

// CurrentConnectionCount is how many clients are connected.
func (w *World) CurrentConnectionCount() int {
	return w.statistic("connected_clients", func(p *pool) int { return p.open })
}

// TotalConnectionCount is how many clients have ever connected.
func (w *World) TotalConnectionCount() int {
	return w.statistic("total_connections_received", func(p *pool) int { return p.entered })
}

// statistic is a field of INFO without what the launcher has added to it.
func (w *World) statistic(field string, own func(*pool) int) int {
	p := w.live()
	if p == nil {
		w.fail(errClosed)
		return 0
	}
	_, rest, _ := strings.Cut(text(w.must("INFO", "clients", "stats")), "\n"+field+":")
	value, _ := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	p.Lock()
	defer p.Unlock()
	return value - own(p)
}

// IsReadOnlyCommand tells whether a command never changes data.
func (w *World) IsReadOnlyCommand(command string) bool {
	found, _ := w.must("COMMAND", "INFO", command).([]any)
	if len(found) == 0 {
		return false
	}
	about, _ := found[0].([]any)
	return len(about) > 2 && slices.Contains(texts(about[2]), "readonly")
}

// Select chooses the database of the direct methods.
func (w *World) Select(database int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.RedisDB = w.DB(database)
}

// DB is a database, with the direct methods.
func (w *World) DB(database int) *RedisDB { return &RedisDB{w, database} }

// SwapDB swaps two databases.
func (w *World) SwapDB(first, second int) bool {
	_, err := w.call("SWAPDB", first, second)
	return err == nil
}

// FlushAll removes all keys of all databases.
func (w *World) FlushAll() { w.must("FLUSHALL") }

// Copy copies a key to another one, which may be in another database.
func (w *World) Copy(fromDB int, from string, toDB int, to string) error {
	copied, err := w.DB(fromDB).call("COPY", from, to, "DB", toDB, "REPLACE")
	if err == nil && copied == 0 {
		err = ErrKeyNotFound
	}
	return err
}

// Publish sends a message, and returns how many have got it.
func (w *World) Publish(channel, message string) int {
	return number(w.must("PUBLISH", channel, message))
}

// PubSubChannels are the channels that somebody is subscribed to, by a glob; an empty one is for all.
func (w *World) PubSubChannels(glob string) []string {
	if glob == "" {
		glob = "*"
	}
	return sorted(texts(w.must("PUBSUB", "CHANNELS", glob)))
}

// PubSubNumSub is how many are subscribed to each of the channels.
func (w *World) PubSubNumSub(channels ...string) map[string]int {
	counts := map[string]int{}
	found, _ := w.must(words("PUBSUB", "NUMSUB", channels)...).([]any)
	for place := 0; place+1 < len(found); place += 2 {
		counts[text(found[place])] = number(found[place+1])
	}
	return counts
}

// PubSubNumPat is how many patterns somebody is subscribed to.
func (w *World) PubSubNumPat() int { return number(w.must("PUBSUB", "NUMPAT")) }

// T is what a check needs of a *testing.T.
type T interface {
	Helper()
	Errorf(format string, arguments ...any)
}

// CheckGet fails the test unless the key has this string.
func (w *World) CheckGet(t T, key, expected string) {
	t.Helper()
	if found, err := w.Get(key); err != nil || found != expected {
		t.Errorf("%q should be %q, but is %q (%v)", key, expected, found, err)
	}
}

// CheckList fails the test unless the key has a list of these elements.
func (w *World) CheckList(t T, key string, expected ...string) {
	t.Helper()
	if found, err := w.List(key); err != nil || fmt.Sprintf("%q", found) != fmt.Sprintf("%q", expected) {
		t.Errorf("%q should be the list %q, but is %q (%v)", key, expected, found, err)
	}
}

// CheckSet fails the test unless the key has a set of these members.
func (w *World) CheckSet(t T, key string, expected ...string) {
	t.Helper()
	expected = sorted(append([]string(nil), expected...))
	if found, err := w.Members(key); err != nil || fmt.Sprintf("%q", found) != fmt.Sprintf("%q", expected) {
		t.Errorf("%q should be the set %q, but is %q (%v)", key, expected, found, err)
	}
}

// TTL is how long a key has to live: to the nearest second, as the command TTL answers, so that a test can compare it, but
// in milliseconds where that is less than a second. It is 0 for a key that lives for ever, or that is not there.
func (d *RedisDB) TTL(key string) time.Duration { return lifetime(d.must("PTTL", key)) }

func lifetime(reply any) time.Duration {
	left := time.Duration(max(0, number(reply))) * time.Millisecond
	if left >= time.Second/2 {
		return left.Round(time.Second)
	}
	return left
}
