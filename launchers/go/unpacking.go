package dunlin

// Where the program of the module is put, so that it can be run. A file that another user could have written never is.

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// place puts the program somewhere. What it returns besides the path removes it again, if it does not stay there.
type place func() (string, func(), error)

// places are all that can be tried, the best first. A folder that somebody has named is the only one.
func places() []place {
	if os.Getenv("DUNLIN_CACHE") != "" {
		return []place{inCache}
	}
	return []place{inCache, inTemporary, inMemory}
}

// isForbidden tells whether the system refuses to execute a file, as it does where a file system forbids programs.
func isForbidden(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOEXEC)
}

func cacheFolder() (string, error) {
	if named := os.Getenv("DUNLIN_CACHE"); named != "" {
		return filepath.Abs(named)
	}
	folder, err := os.UserCacheDir()
	return filepath.Join(folder, "dunlin"), err
}

// inCache is the program in the user's cache, where it stays. Several processes may write it at once: each writes a
// file of its own, which takes the name when it is whole.
func inCache() (string, func(), error) {
	folder, err := cacheFolder()
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, err
	}
	if othersCanChange(folder) {
		return "", nil, fmt.Errorf("others can write in %s, so a program there could be theirs", folder)
	}
	path := filepath.Join(folder, "dunlin-"+version+"-"+carried.hash+suffix)
	if isWhole(path) {
		return path, func() {}, nil
	}
	file, err := os.CreateTemp(folder, "unpacking-")
	if err != nil {
		return "", nil, err
	}
	if err = fill(file); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		// On Windows a program that runs cannot be replaced; another process has put it there meanwhile.
		if !isWhole(path) {
			return "", nil, err
		}
	}
	return path, func() {}, nil
}

// isWhole tells whether a file is the program, as this user or the system's has put it there.
func isWhole(path string) bool {
	found, err := os.Lstat(path)
	return err == nil && found.Mode().IsRegular() && found.Size() == carried.size && !othersCanChange(path)
}

// inTemporary is the program in a private folder, which is gone when it has started, or on Windows when it has ended.
func inTemporary() (string, func(), error) {
	if parent := os.TempDir(); othersCanReplace(parent) {
		return "", nil, fmt.Errorf("others can replace what is in %s", parent)
	}
	folder, err := os.MkdirTemp("", "dunlin-")
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(folder, "dunlin"+suffix)
	file, err := os.Create(path)
	if err == nil {
		err = fill(file)
	}
	if err != nil {
		os.RemoveAll(folder)
		return "", nil, err
	}
	return path, func() { os.RemoveAll(folder) }, nil
}

func fill(file *os.File) error {
	err := unpack(file)
	if err == nil {
		err = file.Chmod(0o700)
	}
	return errors.Join(err, file.Close())
}

// unpack writes the program to a file.
func unpack(file *os.File) error {
	program, err := gzip.NewReader(bytes.NewReader(carried.packed))
	if err == nil {
		_, err = io.Copy(file, program)
	}
	return err
}
