package dunlin

// The log of a server: a file that nobody but its process and this one can find.

import (
	"io"
	"os"
	"strings"
	"sync"
)

// logTail is how many of the last bytes of a log are shown, and logLongest beyond how many its beginning is cut off.
const (
	logTail    = 32 << 10
	logLongest = 4 << 20
)

// logFile is what the server writes its log to. A pipe would need a goroutine that reads it as long as the server runs,
// which a test that looks for goroutines would find.
type logFile struct {
	sync.Mutex
	file *os.File // nil where the system gives no file: the log is lost then
	path string   // where it is still to be removed: Windows keeps the name of a file that is open
	last string   // what a closed one had
	// Whether the beginning can be cut off: not on Windows, where the server would go on behind a gap.
	isCut bool
}

func newLog() *logFile {
	if file, err := memoryFile("dunlin-log"); err == nil {
		return appended(&logFile{file: file})
	}
	file, err := os.CreateTemp("", "dunlin-log-")
	if err != nil {
		return &logFile{}
	}
	l := &logFile{file: file}
	if os.Remove(file.Name()) != nil {
		l.path = file.Name()
	}
	return appended(l)
}

// appended has the server write at the end of the file, wherever that is after a cut.
func appended(l *logFile) *logFile {
	l.isCut = l.path == "" && appendOnly(l.file) == nil
	return l
}

// cut keeps a log that has grown from taking more and more memory. A line that is written meanwhile may be lost.
func (l *logFile) cut() {
	l.Lock()
	defer l.Unlock()
	if l.file == nil || !l.isCut {
		return
	}
	if info, err := l.file.Stat(); err != nil || info.Size() <= logLongest {
		return
	}
	end := l.end()
	if l.file.Truncate(0) == nil {
		l.file.WriteString(end)
	}
}

// String is the last that the server has written, each line on a line of its own behind a line break and an indent.
func (l *logFile) String() string {
	l.cut()
	l.Lock()
	defer l.Unlock()
	if l.file != nil {
		return indented(l.end())
	}
	return l.last
}

func indented(log string) string {
	var text strings.Builder
	for _, line := range strings.Split(log, "\n") {
		if line != "" {
			text.WriteString("\n  " + line)
		}
	}
	return text.String()
}

// end reads without the position in the file, which is the server's too.
func (l *logFile) end() string {
	file := l.file
	if l.path != "" {
		again, err := os.Open(l.path)
		if err != nil {
			return ""
		}
		defer again.Close()
		file = again
	}
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	start := max(0, info.Size()-logTail)
	data, err := io.ReadAll(io.NewSectionReader(file, start, info.Size()-start))
	if err != nil {
		return ""
	}
	if _, whole, is := strings.Cut(string(data), "\n"); is && start > 0 {
		return whole
	}
	return string(data)
}

func (l *logFile) close() {
	l.Lock()
	defer l.Unlock()
	if l.file == nil {
		return
	}
	l.last = indented(l.end())
	l.file.Close()
	l.file = nil
	if l.path != "" {
		os.Remove(l.path)
	}
}
