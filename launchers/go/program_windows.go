package dunlin

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

const suffix = ".exe"

// detach keeps Ctrl-C of a terminal from the server: it ends the tests, and those end the server.
func detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// become runs the program as a child, as no process can take the place of another.
func become(path string, words []string) error {
	signal.Ignore(os.Interrupt) // Ctrl-C reaches the child, too, which decides
	command := exec.Command(path, words...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := command.Run()
	if command.ProcessState != nil {
		os.Exit(command.ProcessState.ExitCode())
	}
	return err
}

func appendOnly(*os.File) error { return syscall.EWINDOWS }

// othersCanChange and othersCanReplace are false: the folders of a user's profile, where the cache and the temporary
// files are, are closed to other users by what they inherit.
func othersCanChange(string) bool  { return false }
func othersCanReplace(string) bool { return false }
