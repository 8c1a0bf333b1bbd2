package dunlin

// Connections to the server that the launcher keeps for itself, in RESP2. A temporary world ends with its last client,
// so its connection also keeps the world while the application has none.

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// patience is how long a reply may take that waits for nothing.
const patience = 10 * time.Second

// CommandError is an error that the server has answered, with its text.
type CommandError string

func (e CommandError) Error() string { return string(e) }

var errEnded = errors.New("dunlin: the server has closed the connection: it has ended, or the world was dropped")

type address struct{ network, place, user, password string }

func addressOf(text string) (address, error) {
	parts, err := url.Parse(text)
	if err == nil {
		password, _ := parts.User.Password()
		switch {
		case parts.Scheme == "unix" && parts.Path != "":
			return address{"unix", parts.Path, parts.User.Username(), password}, nil
		case parts.Scheme == "redis" && parts.Hostname() != "":
			port := parts.Port()
			if port == "" {
				port = "6379"
			}
			return address{"tcp", net.JoinHostPort(parts.Hostname(), port), parts.User.Username(), password}, nil
		}
	}
	return address{}, fmt.Errorf("dunlin: %q is no address of a server; it should be like redis://127.0.0.1:6379", text)
}

// url is how a user, which may be a world, comes to the server.
func (a address) url(user string) string {
	u := url.URL{Scheme: "redis", Host: a.place}
	if a.network == "unix" {
		u = url.URL{Scheme: "unix", Path: a.place}
	}
	if user == "" {
		user = a.user
	}
	if a.password != "" {
		u.User = url.UserPassword(user, a.password)
	} else if user != "" {
		u.User = url.UserPassword(user, "any")
	}
	return u.String()
}

type connection struct {
	net.Conn
	reader   *bufio.Reader
	database int
}

func dial(a address) (*connection, error) {
	socket, err := net.DialTimeout(a.network, a.place, patience)
	if err != nil {
		return nil, fmt.Errorf("dunlin: no server answers at %s: %w", a.url(""), err)
	}
	c := &connection{Conn: socket, reader: bufio.NewReader(socket)}
	if login := a.login(); login != nil {
		if err := firstError(c.call(patience, login)); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

func (a address) login() []any {
	switch {
	case a.user != "" && a.password != "":
		return []any{"AUTH", a.user, a.password}
	case a.user != "":
		return []any{"AUTH", a.user, "any"}
	case a.password != "":
		return []any{"AUTH", a.password}
	}
	return nil
}

// call sends all commands at once. A reply that is an error is a CommandError among the replies.
func (c *connection) call(within time.Duration, commands ...[]any) ([]any, error) {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, errEnded
	}
	if err := c.send(commands...); err != nil {
		return nil, err
	}
	replies := make([]any, len(commands))
	for place := range replies {
		reply, err := c.reply()
		if err != nil {
			return nil, err
		}
		replies[place] = reply
	}
	return replies, nil
}

// send writes commands without a wait for their replies.
func (c *connection) send(commands ...[]any) error {
	var out bytes.Buffer
	for _, words := range commands {
		fmt.Fprintf(&out, "*%d\r\n", len(words))
		for _, word := range words {
			text := fmt.Sprint(word)
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(text), text)
		}
	}
	if _, err := c.Write(out.Bytes()); err != nil {
		return errEnded
	}
	return nil
}

// reply reads a string, an int, a []any, a CommandError or nil.
func (c *connection) reply() (any, error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return nil, readError(err)
	}
	kind, rest := line[0], line[1:max(1, len(line)-2)]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return CommandError(rest), nil
	}
	number, err := strconv.Atoi(rest)
	if err != nil || (kind != ':' && kind != '$' && kind != '*') {
		return nil, fmt.Errorf("dunlin: %q is no reply of a Redis server", line)
	}
	switch {
	case kind == ':':
		return number, nil
	case number < 0:
		return nil, nil
	case kind == '$':
		data := make([]byte, number+2)
		if _, err := io.ReadFull(c.reader, data); err != nil {
			return nil, readError(err)
		}
		return string(data[:number]), nil
	}
	items := make([]any, number)
	for place := range items {
		if items[place], err = c.reply(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func readError(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return errEnded
}

// firstError is the first reply that is one.
func firstError(replies []any, err error) error {
	for _, reply := range replies {
		if refused, is := reply.(CommandError); is && err == nil {
			err = refused
		}
	}
	return err
}

// pool has the connections into one world: one for each call that is under way, so that a goroutine that waits keeps no
// other one from moving the clock.
type pool struct {
	address
	sync.Mutex
	entrance       [][]any
	idle           []*connection
	open, entered  int
	sent           int
	isOver         bool
	hasLost        bool // a connection, and perhaps the world with it
	errorForOthers string
}

// take is a connection without work. One that the server has closed meanwhile is replaced.
func (p *pool) take() (*connection, error) {
	for {
		c, err := p.pop()
		if err != nil {
			return nil, err
		}
		if c == nil {
			return p.connect()
		}
		if c.isOpen() {
			return c, nil
		}
		p.give(c, false)
	}
}

// pop is a connection without work, or nil if there is none.
func (p *pool) pop() (*connection, error) {
	p.Lock()
	defer p.Unlock()
	if p.isOver {
		return nil, errors.New("dunlin: it is closed")
	}
	last := len(p.idle) - 1
	if last < 0 {
		return nil, nil
	}
	c := p.idle[last]
	p.idle = p.idle[:last]
	return c, nil
}

// connect makes a connection into the world.
func (p *pool) connect() (*connection, error) {
	p.Lock()
	entrance, hasLost := p.entrance, p.hasLost
	p.Unlock()
	c, err := dial(p.address)
	if err != nil {
		return nil, err
	}
	if hasLost && len(entrance) > 0 && !c.finds(entrance[0][2]) {
		err = errEnded
	} else {
		err = firstError(c.call(patience, entrance...))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	p.adopt(c, len(entrance))
	return c, nil
}

// finds tells whether the server has a world: one whose last client is gone would be made anew, without its data.
func (c *connection) finds(world any) bool {
	replies, err := c.call(patience, []any{"DUNLIN", "WORLDS"})
	return err == nil && slices.ContainsFunc(maps(replies[0]), func(each map[string]any) bool { return each["name"] == world })
}

// adopt counts a connection that has come into the world with so many commands.
func (p *pool) adopt(c *connection, sent int) {
	p.Lock()
	defer p.Unlock()
	p.open++
	p.entered++
	p.sent += sent
}

func (p *pool) give(c *connection, isWhole bool) {
	p.Lock()
	defer p.Unlock()
	if !isWhole || p.isOver {
		p.open--
		p.hasLost = true
		c.Close()
		return
	}
	p.idle = append(p.idle, c)
}

// lend takes a connection out that goes into a world.
func (p *pool) lend() {
	p.Lock()
	defer p.Unlock()
	p.open--
}

func (p *pool) isClosed() bool {
	p.Lock()
	defer p.Unlock()
	return p.isOver
}

// drain ends the pool; the connections without work are the caller's.
func (p *pool) drain() []*connection {
	p.Lock()
	defer p.Unlock()
	idle := p.idle
	p.idle, p.isOver = nil, true
	p.open -= len(idle)
	return idle
}

// call runs commands in a database, on a connection of their own. The first error among the replies is returned.
func (p *pool) call(database int, within time.Duration, commands ...[]any) ([]any, error) {
	c, err := p.take()
	if err != nil {
		return nil, err
	}
	p.Lock()
	failure := p.errorForOthers
	p.Unlock()
	if failure != "" {
		commands = append(append([][]any{removeError}, commands...), addError(failure))
	}
	if c.database != database {
		// In a call of its own: where the database is refused, nothing may run in another one.
		choice := [][]any{{"SELECT", database}}
		if failure != "" {
			choice = [][]any{removeError, choice[0], addError(failure)}
		}
		if _, err := p.callOn(c, within, choice); err != nil {
			return nil, err
		}
		c.database = database
	}
	replies, err := p.callOn(c, within, commands)
	if err != nil {
		return nil, err
	}
	p.give(c, true)
	if failure != "" {
		return replies[1 : len(replies)-1], nil
	}
	return replies, nil
}

// callOn gives the connection back if it returns an error. One whose reply is late is closed, and another one is made before
// that, as the world would end with its last client.
func (p *pool) callOn(c *connection, within time.Duration, commands [][]any) ([]any, error) {
	p.count(len(commands))
	replies, err := c.call(within, commands...)
	isWhole := err == nil
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if other, failed := p.connect(); failed == nil {
			p.give(other, true)
		}
	}
	if err = firstError(replies, err); err != nil {
		p.give(c, isWhole)
		return nil, err
	}
	return replies, nil
}

// count adds to the commands that are not the application's.
func (p *pool) count(commands int) {
	p.Lock()
	defer p.Unlock()
	p.sent += commands
}

// alone runs a command, on which no error that SetError has set is looked for.
func (p *pool) alone(command []any) error {
	c, err := p.take()
	if err != nil {
		return err
	}
	if _, err = p.callOn(c, patience, [][]any{command}); err == nil {
		p.give(c, true)
	}
	return err
}

// spared runs what the error of SetError must not strike, and that cannot be sent together with the end of that error.
func (p *pool) spared(action func() error) error {
	p.Lock()
	failure := p.errorForOthers
	p.Unlock()
	if failure == "" {
		return action()
	}
	if err := p.alone(removeError); err != nil {
		return err
	}
	return errors.Join(action(), p.alone(addError(failure)))
}

var removeError = []any{"DUNLIN", "FAULT", "REMOVE", "SetError"}

func addError(text string) []any {
	return []any{"DUNLIN", "FAULT", "ADD", "SetError", "ERROR", text}
}
