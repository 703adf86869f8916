package traces

import (
	"context"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// fileClient is the transport of an OTLP exporter that appends each request to a file, as one line
// of JSON.
type fileClient struct {
	path string
	max  int64

	mu   sync.Mutex // guards what follows
	file *os.File
	size int64
}

var _ otlptrace.Client = (*fileClient)(nil)

// Start opens the file, so that a path that cannot be written is an error at start-up.
func (c *fileClient) Start(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open()
}

func (c *fileClient) open() error {
	// Traces may hold content: they are for the owner only.
	f, err := os.OpenFile(c.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("traces file: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("traces file: %w", err)
	}
	c.file, c.size = f, info.Size()
	return nil
}

// UploadTraces appends a line. Its single write keeps lines of several processes apart.
func (c *fileClient) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	line, err := encodeLine(spans)
	if err != nil {
		return fmt.Errorf("traces file %s: %w", c.path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil && c.size > 0 && c.size+int64(len(line)) > c.max {
		if err := c.rotate(); err != nil {
			return err
		}
	}
	if c.file == nil { // a rotation has failed half-way
		if err := c.open(); err != nil {
			return err
		}
	}
	n, err := c.file.Write(line)
	c.size += int64(n)
	if err != nil {
		return fmt.Errorf("traces file: %w", err)
	}
	return nil
}

func (c *fileClient) rotate() error {
	err := c.file.Close()
	c.file = nil
	if err != nil {
		return fmt.Errorf("traces file: %w", err)
	}
	if err := os.Rename(c.path, c.path+".1"); err != nil {
		return fmt.Errorf("traces file: %w", err)
	}
	return c.open()
}

// Stop closes the file.
func (c *fileClient) Stop(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	if err != nil {
		return fmt.Errorf("traces file: %w", err)
	}
	return nil
}
