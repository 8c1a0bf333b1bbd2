//go:build unix

package dunlin

import (
	"os/exec"
	"syscall"
)

const suffix = ""

// detach keeps Ctrl-C of a terminal from the server: it ends the tests, and those end the server.
func detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
