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

// othersCanChange and othersCanReplace are false: the folders of a user's profile, where the cache and the temporary
// files are, are closed to other users by what they inherit.
func othersCanChange(string) bool  { return false }
func othersCanReplace(string) bool { return false }
