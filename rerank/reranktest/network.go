package reranktest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
)

// URL is that of the service on a Network.
const URL = "http://reranker.test"

// Network is a reranker behind a network in memory: a real HTTP client and server with pipes between
// them. In a synctest bubble its waiting is seen as waiting, which that for a socket is not.
type Network struct {
	http.Transport
	server *http.Server
	conns  chan net.Conn
	done   chan struct{}
}

// NewNetwork starts the service. Without a handler, connecting to it takes for ever.
func NewNetwork(serve http.HandlerFunc) *Network {
	n := &Network{conns: make(chan net.Conn), done: make(chan struct{})}
	n.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conns := n.conns
		if serve == nil {
			conns = nil // nobody takes it
		}
		client, server := net.Pipe()
		select {
		case conns <- server:
			return client, nil
		case <-n.done:
			return nil, errors.New("connection refused")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	n.server = &http.Server{
		ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// A server watches the connection, and so sees the caller go, only once the body is read.
			body, _ := io.ReadAll(r.Body) // a caller that has gone is seen by the handler
			r.Body = io.NopCloser(bytes.NewReader(body))
			serve(w, r)
		}),
	}
	go func() { _ = n.server.Serve(n) }() // ends with Close
	return n
}

// Close ends the service and all connections.
func (n *Network) Close() error {
	select {
	case <-n.done:
		return nil
	default:
	}
	close(n.done)
	n.CloseIdleConnections()
	return n.server.Close()
}

// Accept makes the network the listener of its server.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

// Addr is that of the listener.
func (n *Network) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "reranker.test:80" }
