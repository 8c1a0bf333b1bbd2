package dunlin

import (
	"os/exec"
	"syscall"
)

const suffix = ".exe"

// detach keeps Ctrl-C of a terminal from the server: it ends the tests, and those end the server.
func detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
