//go:build !unix

package dunlin

// isOpen is not known here; a call finds out.
func (c *connection) isOpen() bool { return true }
