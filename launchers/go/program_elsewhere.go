//go:build !linux

package dunlin

import (
	"errors"
	"os"
)

var errNoMemoryFile = errors.New("this system has no file in memory")

func inMemory() (string, func(), error) { return "", nil, errNoMemoryFile }

func memoryFile(string) (*os.File, error) { return nil, errNoMemoryFile }
