//go:build unix

package dunlin

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

const suffix = ""

// detach keeps Ctrl-C of a terminal from the server: it ends the tests, and those end the server.
func detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func become(path string, words []string) error {
	return syscall.Exec(path, append([]string{path}, words...), os.Environ())
}

// appendOnly has all processes that share an open file write at its end.
func appendOnly(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed syscall.Errno
	err = raw.Control(func(descriptor uintptr) {
		flags, _, number := syscall.Syscall(syscall.SYS_FCNTL, descriptor, syscall.F_GETFL, 0)
		if number == 0 {
			_, _, number = syscall.Syscall(syscall.SYS_FCNTL, descriptor, syscall.F_SETFL, flags|syscall.O_APPEND)
		}
		failed = number
	})
	if err == nil && failed != 0 {
		err = failed
	}
	return err
}

// othersCanChange tells whether somebody but this user, or the system's, can write a file, or what is in a folder. Who
// owns a link to it could lead elsewhere.
func othersCanChange(path string) bool {
	link, err := os.Lstat(path)
	if err != nil || isOthers(link) {
		return true
	}
	found, err := os.Stat(path)
	return err != nil || isOthers(found) || found.Mode().Perm()&writableByOthers != 0
}

// othersCanReplace tells whether somebody else can rename what this user has put into a folder. In one that is sticky,
// as /tmp is, all can write, but only an owner can do that.
func othersCanReplace(folder string) bool {
	found, err := os.Stat(folder)
	if err != nil {
		return false // then nothing can be put there either
	}
	return isOthers(found) || (found.Mode().Perm()&writableByOthers != 0 && found.Mode()&fs.ModeSticky == 0)
}

const writableByOthers = 0o022

func isOthers(found fs.FileInfo) bool {
	status, is := found.Sys().(*syscall.Stat_t)
	return !is || (status.Uid != 0 && int(status.Uid) != os.Geteuid())
}
