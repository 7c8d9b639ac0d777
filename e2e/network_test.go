package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// A command reaches what the policy names, through the proxy, and nothing else;
// the result says what it reached and what not.
func TestNetworkThroughTheExecutor(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	if rung() != "namespaces" {
		t.Skip("this rung has no network at all")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	user := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(user, []byte("[permissions]\nallow = [\"WebFetch(domain:127.0.0.1)\"]\nprivate_networks = [\"127.0.0.0/8\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, policy.Options{Allow: []string{"Bash(*)"}, UserFile: user}, direct)
	// no_proxy would keep curl from asking for a loopback address
	curl := func(url string) string {
		return "curl -s -m 5 --noproxy '' -o out -w '%{http_code}' " + url + "; cat out"
	}
	r := b.want(b.sh(curl("http://127.0.0.1:"+port+"/")), v1.Status_ok)
	contains(t, r.GetOutput().GetText(), "200hello")
	if len(r.Connections) != 1 || r.Connections[0].Host != "127.0.0.1" || fmt.Sprint(r.Connections[0].Port) != port || r.Connections[0].Refused != nil || r.ConnectionsTotal != 1 {
		t.Errorf("connections: %v", r.Connections)
	}
	r = b.sh(curl("http://exfil.test/"))
	contains(t, r.GetOutput().GetText(), "403")
	contains(t, strings.Join(r.Notes, "\n"), "exfil.test", "WebFetch(domain:exfil.test)")
	if len(r.Connections) != 1 || r.Connections[0].Refused.GetVerdict() != v1.Decision_deny {
		t.Errorf("connections: %v", r.Connections)
	}
	r = b.sh("curl -s -m 2 --noproxy '*' http://127.0.0.1:" + port + "/ || echo no way")
	contains(t, r.GetOutput().GetText(), "no way")
	step := b.step(contract.RunCommand, map[string]any{"cmd": curl("http://127.0.0.1:"+port+"/") + "; echo ${HTTP_PROXY:-none}"})
	step.Safety = &v1.Safety{Network: v1.Safety_deny}
	if r = b.submit(step); r.Connections != nil || strings.Contains(r.GetOutput().GetText(), "hello\n") {
		t.Errorf("a step that denies itself the network: %v %q", r.Connections, r.GetOutput().GetText())
	}
}
