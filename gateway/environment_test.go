package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// host is a name that only the proxy of these tests can resolve.
const host = "upstream.toolmend.example"

// authority returns a certificate authority as PEM, and a certificate for host
// that it signed.
func authority(t *testing.T) (ca []byte, cert tls.Certificate) {
	make := func(c, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		if signer == nil {
			signer = key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
		require.NoError(t, err)
		return der, key
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootDER, rootKey := make(root, root, nil)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, key := make(leaf, root, rootKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestEnvironment: HTTPS_PROXY and SSL_CERT_FILE count. Go reads both once, so
// the gateway runs in a process of its own: this test again.
func TestEnvironment(t *testing.T) {
	if os.Getenv("TOOLMEND_TEST_CHILD") != "" {
		askOnce(t)
		return
	}
	t.Parallel()
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("Go asks the system for certificates here, and does not read SSL_CERT_FILE")
	}
	ca, cert := authority(t)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(caFile, ca, 0o600))
	var seen atomic.Pointer[http.Header]
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := r.Header.Clone()
		seen.Store(&h)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, chatAnswer(good))
	}))
	up.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	up.EnableHTTP2 = true
	up.StartTLS()
	t.Cleanup(up.Close)
	var tunnels, plain atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			plain.Add(1)
			return
		}
		if r.Host != host+":443" || r.Header.Get("Proxy-Authorization") != "Basic dTpw" || r.Header.Get("Authorization") != "" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		tunnels.Add(1)
		there, err := net.Dial("tcp", up.Listener.Addr().String())
		if err != nil {
			return
		}
		defer there.Close()
		w.WriteHeader(http.StatusOK)
		here, early, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		go func() { _, _ = io.Copy(there, early.Reader) }() // it may hold bytes already
		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(proxy.Close)

	child := func(env ...string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEnvironment$")
		cmd.Env = append(env, "TOOLMEND_TEST_CHILD=1", "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	through := "HTTPS_PROXY=" + strings.Replace(proxy.URL, "http://", "http://u:p@", 1)
	out := child(through, "SSL_CERT_FILE="+caFile)
	require.Contains(t, out, "status 200, valid")
	require.EqualValues(t, 1, tunnels.Load())
	require.Equal(t, "Bearer up", seen.Load().Get("Authorization"))
	require.Empty(t, seen.Load().Get("Proxy-Authorization"))

	seen.Store(nil)
	out = child(through)
	require.Contains(t, out, "status 502", "the authority is unknown")
	require.Nil(t, seen.Load(), "nothing was sent")
	out = child(through, "SSL_CERT_FILE="+caFile, "NO_PROXY="+host)
	require.Contains(t, out, "status 502", "the name is unknown without the proxy")
	require.EqualValues(t, 2, tunnels.Load())
	require.Zero(t, plain.Load())
}

// askOnce prints what a client of a gateway gets.
func askOnce(t *testing.T) {
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{
		URL: "https://" + host, Headers: gateway.HeaderRules{Set: map[string]string{"Authorization": "Bearer up"}},
	}}}, gateway.Options{})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(chatRequest("m")))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	require.NoError(t, g.Close())
	fmt.Printf("status %d, %s\n", w.Code, w.Header().Get("X-Toolmend-Status"))
}
