package dunlin

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// memfdCreate is the number of a system call that the package syscall does not have.
var memfdCreate = map[string]uintptr{"amd64": 319, "arm64": 279}

// inMemory is the program in a file without a folder, for where nothing can be written.
func inMemory() (string, func(), error) {
	file, err := memoryFile("dunlin")
	if err != nil {
		return "", nil, err
	}
	if err := unpack(file); err != nil {
		file.Close()
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", file.Fd()), func() { file.Close() }, nil
}

// memoryFile is a file that has no folder; its name is what /proc shows.
func memoryFile(label string) (*os.File, error) {
	number, is := memfdCreate[runtime.GOARCH]
	name, err := syscall.BytePtrFromString(label)
	if !is || err != nil {
		return nil, errors.New("no file in memory on " + runtime.GOARCH)
	}
	const closeOnExec = 1
	descriptor, _, failed := syscall.Syscall(number, uintptr(unsafe.Pointer(name)), closeOnExec, 0)
	if failed != 0 {
		return nil, fmt.Errorf("no file in memory: %w", failed)
	}
	return os.NewFile(descriptor, label), nil
}
