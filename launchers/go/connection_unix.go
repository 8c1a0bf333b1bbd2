//go:build unix

package dunlin

import (
	"syscall"
	"time"
)

// isOpen tells whether the server has not closed a connection that has no work.
func (c *connection) isOpen() bool {
	socket, is := c.Conn.(syscall.Conn)
	if !is || c.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	handle, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	isOpen := false
	err = handle.Read(func(number uintptr) bool {
		count, _, err := syscall.Recvfrom(int(number), make([]byte, 1), syscall.MSG_PEEK)
		isOpen = count > 0 || err == syscall.EAGAIN
		return true
	})
	return err == nil && isOpen
}
