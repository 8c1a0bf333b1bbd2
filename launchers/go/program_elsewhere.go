//go:build !linux

package dunlin

import "errors"

func inMemory() (string, func(), error) {
	return "", nil, errors.New("this system executes no file in memory")
}
