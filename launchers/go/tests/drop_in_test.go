package tests

// What miniredis has, used as its users do. With its import in the place of ours this passes, too.

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	miniredis "dunlin"
)

// told makes a value of all that a method returns.
func told(values ...any) string {
	return strings.TrimSuffix(fmt.Sprintln(values...), "\n")
}

type line struct {
	*testing.T
}

func (l line) is(found string, expected ...any) {
	l.Helper()
	if found != told(expected...) {
		l.Errorf("found %q, expected %q", found, told(expected...))
	}
}

// client sends lines as an application would, and returns the first line of each reply.
type client struct {
	t *testing.T
	net.Conn
	replies *bufio.Reader
}

func connect(t *testing.T, address string) *client {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return &client{t, connection, bufio.NewReader(connection)}
}

func (c *client) call(command string) string {
	c.send(command)
	return c.reply()
}

func (c *client) send(command string) {
	words := strings.Fields(command)
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	// Where the connection is closed, there is no reply.
	_, _ = c.Write([]byte(text))
}

func (c *client) reply() string {
	reply, err := c.replies.ReadString('\n')
	if err != nil {
		return "closed"
	}
	if reply[0] == '$' && reply != "$-1\r\n" {
		reply, _ = c.replies.ReadString('\n')
	}
	return strings.TrimSpace(reply)
}

func TestStringsAreSetAndRead(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	l.is(told(s.Set("a", "1")), nil)
	l.is(told(s.Get("a")), "1", nil)
	l.is(told(s.Get("none")), "", miniredis.ErrKeyNotFound)
	l.is(told(s.Incr("a", 4)), 5, nil)
	l.is(told(s.Incrfloat("f", 1.5)), 1.5, nil)
	l.is(told(s.IncrByFloat("f", 1)), 2.5, nil)
	s.Push("list", "x")
	l.is(told(s.Set("list", "x")), miniredis.ErrWrongType)
	l.is(told(s.Get("list")), "", miniredis.ErrWrongType)
	s.Set("text", "x")
	l.is(told(s.Incr("text", 1)), 0, miniredis.ErrIntValueError)
	l.is(told(s.Incrfloat("text", 1)), 0, miniredis.ErrFloatValueError)
	s.CheckGet(t, "a", "5")
}

func TestListsArePushedAndPopped(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	l.is(told(s.Lpush("l", "b")), 1, nil)
	l.is(told(s.Push("l", "c", "d")), 3, nil)
	l.is(told(s.RPush("l", "e")), 4, nil)
	l.is(told(s.List("l")), []string{"b", "c", "d", "e"}, nil)
	s.CheckList(t, "l", "b", "c", "d", "e")
	l.is(told(s.Lpop("l")), "b", nil)
	l.is(told(s.Pop("l")), "e", nil)
	l.is(told(s.RPop("l")), "d", nil)
	l.is(told(s.Pop("none")), "", miniredis.ErrKeyNotFound)
	l.is(told(s.Lpop("none")), "", miniredis.ErrKeyNotFound)
	l.is(told(s.List("none")), []string(nil), miniredis.ErrKeyNotFound)
}

func TestSetsHaveMembers(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	l.is(told(s.SetAdd("s", "b", "a")), 2, nil)
	l.is(told(s.SAdd("s", "c", "a")), 1, nil)
	l.is(told(s.Members("s")), []string{"a", "b", "c"}, nil)
	l.is(told(s.SMembers("none")), []string(nil), miniredis.ErrKeyNotFound)
	s.CheckSet(t, "s", "c", "b", "a")
	l.is(told(s.IsMember("s", "a")), true, nil)
	l.is(told(s.SIsMember("s", "x")), false, nil)
	l.is(told(s.IsMember("none", "x")), false, miniredis.ErrKeyNotFound)
	l.is(told(s.SRem("s", "a", "x")), 1, nil)
	l.is(told(s.SRem("none", "a")), 0, miniredis.ErrKeyNotFound)
	l.is(told(s.SCard("s")), 2, nil)
	l.is(told(s.SCard("none")), 0, nil)
	l.is(told(s.SRandMember("none")), "", nil)
	s.SRem("s", "b")
	l.is(told(s.SRandMember("s")), "c", nil)
}

func TestHashesHaveFields(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	s.HSet("h", "b", "1", "a", "2")
	l.is(told(s.HGet("h", "b"), s.HGet("h", "x"), s.HGet("none", "x")), "1", "", "")
	l.is(told(s.HKeys("h")), []string{"a", "b"}, nil)
	l.is(told(s.HKeys("none")), []string(nil), miniredis.ErrKeyNotFound)
	l.is(told(s.HIncr("h", "b", 2)), 3, nil)
	l.is(told(s.HIncrBy("h", "n", 2)), 2, nil)
	l.is(told(s.HIncrfloat("h", "f", 0.5)), 0.5, nil)
	l.is(told(s.HIncrByFloat("h", "f", 0.5)), 1, nil)
	s.HDel("h", "b")
	l.is(s.HGet("h", "b"), "")
	l.is(told(s.HExpire("h", "a", time.Minute), s.HTTL("h", "a"), s.HTTL("h", "n")), true, time.Minute, time.Duration(0))
	l.is(told(s.HPersist("h", "a"), s.HTTL("h", "a")), true, time.Duration(0))
	s.HSetEX("h", time.Minute, "e", "1")
	s.FastForward(time.Minute)
	l.is(told(s.HGet("h", "e"), s.HGet("h", "a")), "", "2")
}

func TestSortedSetsHaveScores(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	l.is(told(s.ZAdd("z", 2, "b")), true, nil)
	l.is(told(s.ZAdd("z", 1.5, "c")), true, nil)
	l.is(told(s.ZAdd("z", 3, "b")), false, nil)
	l.is(told(s.ZMembers("z")), []string{"c", "b"}, nil)
	l.is(told(s.SortedSet("z")), map[string]float64{"b": 3, "c": 1.5}, nil)
	l.is(told(s.ZScore("z", "c")), 1.5, nil)
	l.is(told(s.ZScore("z", "x")), 0, nil)
	l.is(told(s.ZScore("none", "x")), 0, miniredis.ErrKeyNotFound)
	l.is(told(s.ZMScore("z", "b", "x")), []float64{3, 0}, nil)
	l.is(told(s.DB(0).ZMScore("z", []string{"c", "x"})), []float64{1.5, 0}, nil)
	l.is(told(s.ZRem("z", "b")), true, nil)
	l.is(told(s.ZRem("z", "b")), false, nil)
	l.is(told(s.ZRem("none", "b")), false, miniredis.ErrKeyNotFound)
	l.is(told(s.SortedSet("none")), map[string]float64(nil), miniredis.ErrKeyNotFound)
	s.Set("string", "x")
	l.is(told(s.ZMembers("string")), []string(nil), miniredis.ErrWrongType)
}

func TestStreamsAndHyperLogLogs(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	l.is(told(s.XAdd("x", "0-1", []string{"field", "value"})), "0-1", nil)
	entries, err := s.Stream("x")
	if err != nil || !reflect.DeepEqual(entries, []miniredis.StreamEntry{{ID: "0-1", Values: []string{"field", "value"}}}) {
		t.Errorf("the stream is %v (%v)", entries, err)
	}
	l.is(told(s.Stream("none")), []miniredis.StreamEntry(nil), nil)
	l.is(told(s.PfAdd("p", "a", "b")), 1, nil)
	l.is(told(s.PfAdd("q", "c")), 1, nil)
	l.is(told(s.PfMerge("r", "p", "q")), nil)
	l.is(told(s.PfCount("r")), 3, nil)
}

func TestKeysAreListedCopiedAndDeleted(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	s.Set("b", "1")
	s.Push("a", "1")
	l.is(told(s.Keys(), s.Type("a"), s.Type("b"), s.Type("none")), []string{"a", "b"}, "list", "string", "")
	l.is(told(s.Exists("a"), s.Exists("none")), true, false)
	l.is(told(s.Del("a"), s.Del("a"), s.Unlink("b")), true, false, true)
	s.Set("k", "v")
	l.is(told(s.Copy(0, "k", 1, "copy")), nil)
	l.is(told(s.Copy(0, "none", 1, "copy")), miniredis.ErrKeyNotFound)
	l.is(told(s.DB(1).Get("copy")), "v", nil)
	l.is(told(s.SwapDB(0, 1), s.Exists("copy"), s.Exists("k")), true, true, false)
	s.Select(1)
	l.is(told(s.Exists("k"), s.Keys()), true, []string{"k"})
	s.FlushDB()
	l.is(told(s.Keys(), s.DB(0).Keys()), []string{}, []string{"copy"})
	s.FlushAll()
	l.is(told(s.DB(0).Keys()), []string{})
}

func TestAKeyIsGoneAtItsTime(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	s.Set("k", "v")
	l.is(told(s.TTL("k"), s.TTL("none")), time.Duration(0), time.Duration(0))
	s.SetTTL("k", time.Minute)
	l.is(told(s.TTL("k")), time.Minute)
	s.FastForward(59 * time.Second)
	l.is(told(s.TTL("k"), s.Exists("k")), time.Second, true)
	s.FastForward(time.Second)
	l.is(told(s.TTL("k"), s.Exists("k")), time.Duration(0), false)
	s.Set("k", "v")
	s.SetTTL("k", time.Minute)
	s.SetTTL("k", 0)
	l.is(told(s.TTL("k")), time.Duration(0))
}

func TestTheClockCanBeSet(t *testing.T) {
	s := miniredis.RunT(t)
	s.SetTime(time.Unix(1_000_000, 0))
	id, err := s.XAdd("x", "*", []string{"a", "b"})
	if err != nil || !strings.HasPrefix(id, "1000000") {
		t.Errorf("the entry has the ID %s (%v)", id, err)
	}
}

func TestMessagesArePublished(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	l.is(told(s.Publish("news", "nobody")), 0)
	subscriber := connect(t, s.Addr())
	for _, words := range []string{"SUBSCRIBE news", "PSUBSCRIBE n*"} {
		subscriber.send(words)
		for range 4 {
			subscriber.reply() // the array, the kind, the channel and the count
		}
	}
	l.is(told(s.PubSubChannels(""), s.PubSubChannels("x*")), []string{"news"}, []string{})
	l.is(told(s.PubSubNumSub("news", "none"), s.PubSubNumPat()), map[string]int{"news": 1, "none": 0}, 1)
	l.is(told(s.Publish("news", "hello")), 2)
}

func TestASubscriberReadsItsMessages(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	c := connect(t, s.Addr())
	sub := s.NewSubscriber()
	defer sub.Close()
	l.is(told(sub.Subscribe("news"), sub.Subscribe("news"), sub.Subscribe("jobs"), sub.Psubscribe("n*")), 1, 1, 2, 3)
	l.is(told(sub.Count(), sub.Channels(), sub.Patterns()), 3, []string{"jobs", "news"}, []string{"n*"})
	published := make(chan string, 3)
	go func() {
		for _, command := range []string{"PUBLISH news hello", "PUBLISH nobody x", "PUBLISH jobs one"} {
			published <- c.call(command)
		}
	}()
	l.is(told(<-sub.Messages()), miniredis.PubsubMessage{Channel: "news", Message: "hello"})
	l.is(told(<-sub.Pmessages()), miniredis.PubsubPmessage{Pattern: "n*", Channel: "news", Message: "hello"})
	l.is(told(<-sub.Pmessages()), miniredis.PubsubPmessage{Pattern: "n*", Channel: "nobody", Message: "x"})
	l.is(told(<-sub.Messages()), miniredis.PubsubMessage{Channel: "jobs", Message: "one"})
	l.is(told(<-published, <-published, <-published), ":2", ":1", ":1")
	l.is(told(sub.Unsubscribe("news"), sub.Punsubscribe("n*"), sub.Unsubscribe("none")), 2, 1, 1)
	l.is(told(s.Publish("news", "nobody"), sub.Channels(), sub.Patterns()), 0, []string{"jobs"}, []string{})
	l.is(told(s.CurrentConnectionCount(), s.TotalConnectionCount()), 1, 1)
}

func TestAPasswordIsRequired(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	s.RequireAuth("secret")
	c := connect(t, s.Addr())
	l.is(c.call("GET k"), "-NOAUTH Authentication required.")
	l.is(c.call("AUTH secret"), "+OK")
	l.is(c.call("GET k"), "$-1")
	s.Set("direct", "v")
	s.RequireAuth("")
	l.is(connect(t, s.Addr()).call("GET direct"), "v")
}

func TestAUserIsRequired(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	s.RequireUserAuth("ann", "secret")
	c := connect(t, s.Addr())
	l.is(c.call("GET k"), "-NOAUTH Authentication required.")
	l.is(c.call("AUTH ann secret"), "+OK")
	l.is(c.call("GET k"), "$-1")
	s.RequireUserAuth("ann", "")
	l.is(connect(t, s.Addr()).call("GET k"), "$-1")
}

func TestCommandsOfClientsFail(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	c := connect(t, s.Addr())
	s.SetError("MASTERDOWN no master")
	l.is(c.call("PING"), "-MASTERDOWN no master")
	l.is(told(s.Set("k", "v"), s.DB(3).Exists("k")), nil, false)
	l.is(c.call("GET k"), "-MASTERDOWN no master")
	s.SetError("BUSY a script")
	l.is(c.call("GET k"), "-BUSY a script")
	s.SetError("")
	l.is(c.call("GET k"), "v")
}

func TestCommandsAndConnectionsAreCounted(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	s.Set("direct", "v")
	first, second := connect(t, s.Addr()), connect(t, s.Addr())
	first.call("PING")
	second.call("PING")
	second.call("PING")
	s.DB(2).Set("direct", "v")
	l.is(told(s.CommandCount(), s.CurrentConnectionCount(), s.TotalConnectionCount()), 3, 2, 2)
}

func TestACommandIsReadOnlyOrNot(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	l.is(told(s.IsReadOnlyCommand("get"), s.IsReadOnlyCommand("SET"), s.IsReadOnlyCommand("nosuch")), true, false, false)
}

func TestAServerThatWasClosedComesBack(t *testing.T) {
	s, l := miniredis.RunT(t), line{t}
	address := s.Addr()
	c := connect(t, address)
	l.is(c.call("SET k v EX 60"), "+OK")
	s.Close()
	l.is(c.call("GET k"), "closed")
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the port is still open")
	}
	s.Close()
	l.is(told(s.Restart(), s.Addr()), nil, address)
	l.is(connect(t, address).call("GET k"), "v")
	l.is(told(s.TTL("k")), time.Minute)
}

func TestAServerHasTheAddressThatWasChosen(t *testing.T) {
	l := line{t}
	first := miniredis.NewMiniRedis()
	l.is(told(first.StartAddr("127.0.0.1:0")), nil)
	address := first.Addr()
	l.is(told(first.Host(), first.Host()+":"+first.Port()), "127.0.0.1", address)
	l.is(connect(t, address).call("PING"), "+PONG")
	second := miniredis.NewMiniRedis()
	if err := second.StartAddr(address); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("the port is taken: %v", err)
	}
	first.Close()
	l.is(told(second.StartAddr(address)), nil)
	second.Close()
}

func TestAnAddressTakesTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"test"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := miniredis.RunTLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	connection, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: known, ServerName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	s.Set("k", "v")
	line{t}.is((&client{t, connection, bufio.NewReader(connection)}).call("GET k"), "v")
}

func TestTwoServersAreApart(t *testing.T) {
	first, err := miniredis.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second := miniredis.RunT(t)
	first.Set("k", "v")
	if second.Exists("k") || first.Addr() == second.Addr() {
		t.Error("they are one")
	}
}

func TestAConnectionIsDialed(t *testing.T) {
	connection, err := miniredis.RunT(t).Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	c := &client{t, connection, bufio.NewReader(connection)}
	line{t}.is(c.call("PING"), "+PONG")
}

type recorder struct{ errors []string }

func (*recorder) Helper() {}
func (r *recorder) Errorf(format string, arguments ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, arguments...))
}

func TestAWrongValueFailsTheTest(t *testing.T) {
	s, r := miniredis.RunT(t), &recorder{}
	s.Set("k", "v")
	s.CheckGet(r, "k", "other")
	s.CheckGet(r, "none", "other")
	s.CheckList(r, "none", "other")
	s.CheckSet(r, "k", "other")
	if len(r.errors) != 4 {
		t.Errorf("told are %q", r.errors)
	}
	if errors.Is(miniredis.ErrKeyNotFound, miniredis.ErrWrongType) {
		t.Error("the errors are one")
	}
}
