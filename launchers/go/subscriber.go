package dunlin

// A subscriber of miniredis: channels and patterns whose messages a test reads from channels of Go.

import (
	"sync"
	"time"
)

// PubsubMessage is a message on a channel that is subscribed to.
type PubsubMessage struct {
	Channel string
	Message string
}

// PubsubPmessage is a message on a channel that matches a pattern.
type PubsubPmessage struct {
	Pattern string
	Channel string
	Message string
}

// Subscriber has subscriptions of its own, on a connection of the launcher. Messages wait until they are read.
type Subscriber struct {
	world    *World
	pool     *pool
	socket   *connection
	messages chan PubsubMessage
	matched  chan PubsubPmessage
	done     chan struct{} // closed by Close
	all      sync.WaitGroup
	ending   sync.Once

	mutex    sync.Mutex
	counts   chan int // the replies to Subscribe and the like
	channels map[string]bool
	patterns map[string]bool
}

// NewSubscriber makes a subscriber, which ends with Close, or with the world.
func (w *World) NewSubscriber() *Subscriber {
	p := w.live()
	if p == nil {
		w.fail(errClosed)
		return nil
	}
	socket, err := p.take()
	if err == nil {
		err = socket.SetDeadline(time.Time{})
	}
	if err != nil {
		w.fail(err)
		return nil
	}
	s := &Subscriber{
		world: w, pool: p, socket: socket,
		messages: make(chan PubsubMessage), matched: make(chan PubsubPmessage),
		done: make(chan struct{}), counts: make(chan int, 1),
		channels: map[string]bool{}, patterns: map[string]bool{},
	}
	pushes := make(chan []any)
	s.all.Add(2)
	go s.read(pushes)
	go s.deliver(pushes)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.subscribers = append(w.subscribers, s)
	return s
}

// read takes what the server sends, until the connection ends.
func (s *Subscriber) read(pushes chan<- []any) {
	defer s.all.Done()
	defer close(pushes)
	for {
		reply, err := s.socket.reply()
		push, _ := reply.([]any)
		if err != nil || len(push) < 3 {
			return
		}
		select {
		case pushes <- push:
		case <-s.done:
			return
		}
	}
}

// deliver keeps the messages until somebody reads them, so that none of them holds up the reply to a subscription.
func (s *Subscriber) deliver(pushes <-chan []any) {
	defer s.all.Done()
	defer close(s.messages)
	defer close(s.matched)
	var plain []PubsubMessage
	var matched []PubsubPmessage
	for {
		// A channel that is nil is never ready.
		var toPlain chan<- PubsubMessage
		var toMatched chan<- PubsubPmessage
		var nextPlain PubsubMessage
		var nextMatched PubsubPmessage
		if len(plain) > 0 {
			toPlain, nextPlain = s.messages, plain[0]
		}
		if len(matched) > 0 {
			toMatched, nextMatched = s.matched, matched[0]
		}
		select {
		case push, is := <-pushes:
			switch {
			case !is:
				pushes = nil // what has come can still be read
			case text(push[0]) == "message":
				plain = append(plain, PubsubMessage{text(push[1]), text(push[2])})
			case text(push[0]) == "pmessage" && len(push) == 4:
				matched = append(matched, PubsubPmessage{text(push[1]), text(push[2]), text(push[3])})
			default:
				select {
				case s.counts <- number(push[2]):
				case <-s.done:
					return
				}
			}
		case toPlain <- nextPlain:
			plain = plain[1:]
		case toMatched <- nextMatched:
			matched = matched[1:]
		case <-s.done:
			return
		}
	}
}

// Close ends the subscriptions, and closes the channels.
func (s *Subscriber) Close() {
	s.ending.Do(func() {
		close(s.done)
		s.pool.give(s.socket, false)
		s.all.Wait()
	})
}

// Subscribe subscribes to a channel. It returns how many channels and patterns there are then, as the others do.
func (s *Subscriber) Subscribe(channel string) int {
	return s.change("SUBSCRIBE", channel, func() { s.channels[channel] = true })
}

// Unsubscribe ends the subscription to a channel.
func (s *Subscriber) Unsubscribe(channel string) int {
	return s.change("UNSUBSCRIBE", channel, func() { delete(s.channels, channel) })
}

// Psubscribe subscribes to all channels that match a glob.
func (s *Subscriber) Psubscribe(pattern string) int {
	return s.change("PSUBSCRIBE", pattern, func() { s.patterns[pattern] = true })
}

// Punsubscribe ends the subscription to a pattern.
func (s *Subscriber) Punsubscribe(pattern string) int {
	return s.change("PUNSUBSCRIBE", pattern, func() { delete(s.patterns, pattern) })
}

func (s *Subscriber) change(command, name string, note func()) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	count := 0
	err := s.pool.spared(func() (err error) {
		count, err = s.ask(command, name)
		return err
	})
	if err != nil {
		s.world.fail(err)
		return 0
	}
	note()
	return count
}

// ask sends a command, and waits until the server has carried it out.
func (s *Subscriber) ask(command, name string) (int, error) {
	s.pool.count(1)
	if err := s.socket.send([]any{command, name}); err != nil {
		return 0, err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case count := <-s.counts:
		return count, nil
	case <-s.done:
	case <-timer.C:
	}
	return 0, errEnded
}

// Count is how many channels and patterns are subscribed to.
func (s *Subscriber) Count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.channels) + len(s.patterns)
}

// Channels are the channels that are subscribed to, sorted.
func (s *Subscriber) Channels() []string { return s.names(s.channels) }

// Patterns are the patterns that are subscribed to, sorted.
func (s *Subscriber) Patterns() []string { return s.names(s.patterns) }

func (s *Subscriber) names(of map[string]bool) []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var names []string
	for name := range of {
		names = append(names, name)
	}
	return sorted(names)
}

// Messages has the messages on the channels that are subscribed to.
func (s *Subscriber) Messages() <-chan PubsubMessage { return s.messages }

// Pmessages has the messages on channels that match a pattern.
func (s *Subscriber) Pmessages() <-chan PubsubPmessage { return s.matched }
