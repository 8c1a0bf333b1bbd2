package dunlin

// A port that somebody chose: its clients are led to the world's own port.

import (
	"io"
	"net"
	"sync"
)

// door leads the clients of a listener to a target, until it is closed.
type door struct {
	net.Listener
	target string
	all    sync.WaitGroup
	mutex  sync.Mutex
	open   map[net.Conn]bool
	isShut bool
}

func openDoor(listener net.Listener, target string) *door {
	d := &door{Listener: listener, target: target, open: map[net.Conn]bool{}}
	d.all.Add(1)
	go d.serve()
	return d
}

func (d *door) serve() {
	defer d.all.Done()
	for {
		client, err := d.Accept()
		if err != nil {
			return
		}
		if d.enters(client) {
			d.all.Add(1)
			go d.lead(client)
		}
	}
}

// lead brings a client to the target, and returns when either of them closes.
func (d *door) lead(client net.Conn) {
	defer d.all.Done()
	defer d.leaves(client)
	world, err := net.DialTimeout("tcp", d.target, patience)
	if err != nil || !d.enters(world) {
		return
	}
	d.all.Add(1)
	go func() {
		defer d.all.Done()
		io.Copy(world, client)
		d.leaves(world)
	}()
	io.Copy(client, world)
}

// enters keeps a connection, so that close can end it; a door that is shut takes none.
func (d *door) enters(connection net.Conn) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.isShut {
		connection.Close()
		return false
	}
	d.open[connection] = true
	return true
}

func (d *door) leaves(connection net.Conn) {
	connection.Close()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.open, connection)
}

// close ends the connections, and returns when no goroutine is left.
func (d *door) close() {
	d.Close()
	d.mutex.Lock()
	d.isShut = true
	for connection := range d.open {
		connection.Close()
	}
	d.mutex.Unlock()
	d.all.Wait()
}
