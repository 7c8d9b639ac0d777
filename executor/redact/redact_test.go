package redact

import (
	"strings"
	"testing"
)

// made is a text of n characters that looks random, so that no token stands in
// this file as a whole.
func made(alphabet string, n int) string {
	var b strings.Builder
	for i, x := 0, uint32(2463534242); i < n; i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b.WriteByte(alphabet[x%uint32(len(alphabet))])
	}
	return b.String()
}

const (
	hexes = "0123456789abcdef"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// secrets is, for each rule, a text and the part of it that must go.
var secrets = []struct{ rule, before, secret, after string }{
	{"private-key", "echo '", "-----BEGIN OPENSSH PRIVATE KEY-----\\n" + made(alnum, 90) + "\\n-----END OPENSSH PRIVATE KEY-----", "' > k"},
	{"private-key", "", "-----BEGIN PRIVATE KEY-----\n" + made(alnum, 90), ""},
	{"age-key", "", "AGE-SECRET-KEY-1" + made(upper, 58), ""},
	{"note-key", "", "PRIVATE+KEY+x+" + made(alnum, 40), " "},
	{"aws-key-id", "id ", "AKIA" + made(upper, 16), " x"},
	{"aws-key-id", "id ", "ASIA" + made(upper, 16), " x"},
	{"github-token", "git clone https://x:", "ghp_" + made(alnum, 36), "@example.test/r"},
	{"github-token", "", "gho_" + made(alnum, 36), ""}, {"github-token", "", "ghu_" + made(alnum, 36), ""},
	{"github-token", "", "ghs_" + made(alnum, 36), ""}, {"github-token", "", "ghr_" + made(alnum, 36), ""},
	{"github-token", "T=", "github_pat_" + made(alnum, 60), "\n"},
	{"gitlab-token", "", "glpat-" + made(alnum, 20), ""},
	{"slack-token", "", "xoxb-" + made("0123456789", 12) + "-" + made(alnum, 24), ""},
	{"slack-token", "", "xapp-1-" + made(alnum, 40), ""},
	{"slack-webhook", "curl https://hooks.slack.com/services/", made(upper, 9) + "/" + made(upper, 9) + "/" + made(alnum, 24), " -d x"},
	{"discord-webhook", "https://discord.com/api/webhooks/1234/", made(alnum, 60), ""},
	{"stripe-key", "", "sk_live_" + made(alnum, 24), ""}, {"stripe-key", "", "rk_test_" + made(alnum, 24), ""},
	{"stripe-secret", "", "whsec_" + made(alnum, 32), ""},
	{"model-key", "", "sk-ant-api03-" + made(alnum, 90), ""}, {"model-key", "", "sk-proj-" + made(alnum, 48), ""},
	{"google-key", "", "AIza" + made(alnum, 35), ""}, {"google-token", "", "ya29." + made(alnum, 60), ""}, {"google-secret", "", "GOCSPX-" + made(alnum, 28), ""},
	{"npm-token", "//registry.example.test/:_authToken=", "npm_" + made(alnum, 36), ""},
	{"pypi-token", "", "pypi-AgEIcHlwaS5vcmc" + made(alnum, 60), ""}, {"rubygems-key", "", "rubygems_" + made(hexes, 48), ""},
	{"docker-token", "", "dckr_pat_" + made(alnum, 27), ""}, {"huggingface-token", "", "hf_" + made(alnum, 34), ""},
	{"sendgrid-key", "", "SG." + made(alnum, 22) + "." + made(alnum, 43), ""}, {"shopify-token", "", "shpat_" + made(hexes, 32), ""},
	{"square-token", "", "sq0atp-" + made(alnum, 22), ""}, {"digitalocean-token", "", "dop_v1_" + made(hexes, 64), ""},
	{"databricks-token", "", "dapi" + made(hexes, 32), ""}, {"vault-token", "", "hvs." + made(alnum, 90), ""}, {"vault-token", "", "hvb." + made(alnum, 150), ""},
	{"terraform-token", "", made(alnum, 14) + ".atlasv1." + made(alnum, 64), ""}, {"atlassian-token", "", "ATATT3" + made(alnum, 180), ""},
	{"linear-key", "", "lin_api_" + made(alnum, 40), ""}, {"notion-token", "", "ntn_" + made(alnum, 46), ""},
	{"grafana-token", "", "glsa_" + made(alnum, 32) + "_" + made(hexes, 8), ""}, {"grafana-token", "", "glc_" + made(alnum, 60), ""},
	{"sentry-token", "", "sntrys_" + made(alnum, 60), ""}, {"tailscale-key", "", "tskey-auth-" + made(alnum, 30), ""},
	{"doppler-token", "", "dp.pt." + made(alnum, 43), ""}, {"fly-token", "", "fm2_" + made(alnum, 120), ""},
	{"planetscale-token", "", "pscale_tkn_" + made(alnum, 43), ""}, {"postman-key", "", "PMAK-" + made(hexes, 24) + "-" + made(hexes, 34), ""},
	{"pulumi-token", "", "pul-" + made(hexes, 40), ""}, {"newrelic-key", "", "NRAK-" + made(upper, 27), ""},
	{"dynatrace-token", "", "dt0c01." + made(upper, 24) + "." + made(upper, 64), ""}, {"1password-token", "", "ops_eyJ" + made(alnum, 250), ""},
	{"netlify-token", "", "nfp_" + made(alnum, 36), ""}, {"supabase-token", "", "sbp_" + made(hexes, 40), ""},
	{"telegram-token", "/ ", "123456789:AA" + made(alnum, 33), "/getMe"},
	{"azure-key", "AccountName=x;AccountKey=", made(alnum, 86) + "==", ";E"},
	{"jwt", "", "eyJ" + made(alnum, 20) + ".eyJ" + made(alnum, 30) + "." + made(alnum, 40), ""},
	{"password-in-url", "psql postgres://app:", "s3cr3t", "@db.example.test/x"},
	{"authorization", `curl -H "Authorization: Bearer `, made(alnum, 24), `"`}, {"authorization", `curl -H \"authorization: basic `, "dXNlcjpwYXNz", `\"`},
	{"curl-user", "curl -s -u me:", "hunter22", " https://example.test"},
	{"password", "DB_PASSWORD=", "correcthorse", " ./run"}, {"password", `{\"password\": \"`, "hunter2222", `\"}`},
	{"secret", "AWS_SECRET_ACCESS_KEY=", made(alnum, 40), "\n"}, {"token", "export DEPLOY_TOKEN='", made(alnum, 30), "'"},
	{"api-key", "api_key: ", made(alnum, 32), "\n"},
}

func TestSecretsGo(t *testing.T) {
	r := New([]byte("k"))
	tried := map[string]bool{}
	for _, s := range secrets {
		tried[s.rule] = true
		got := r.Text(s.before + s.secret + s.after)
		if strings.Contains(got, s.secret) || !strings.HasPrefix(got, s.before+mark) || !strings.HasSuffix(got, "]"+s.after) {
			t.Errorf("%s: %q", s.rule, got)
		}
		if strings.Count(got, mark) != 1 {
			t.Errorf("%s: taken more than once: %q", s.rule, got)
		}
	}
	for _, rule := range rules {
		if !tried[rule.name] {
			t.Errorf("%s: no secret of this kind was tried", rule.name)
		}
	}
}

// What is no secret stays: words, digests, names of variables, code.
func TestTheRestStays(t *testing.T) {
	for _, text := range []string{
		"", "make test", "sha256:" + made(hexes, 64), "git checkout " + made(hexes, 40), "npm_config_cache=x npm ci",
		"echo $GITHUB_TOKEN", "curl -H \"Authorization: Bearer $TOKEN\"", "password=$DB_PASSWORD", "PASSWORD=${X}", "if token == nil {", "token := next()",
		"key: value", "go test ./... -run TestToken", "task-runner --risk-level=high-and-very-long", "https://example.test:8080/a@b", "git@example.test:a/b",
		"const apiKeyHeader = \"x\"", "public_key_path=/etc/ssl/a.pem", "secret: string", "eyJ", "sk-learn", "desk-" + strings.Repeat("a", 30),
	} {
		if got := New(nil).Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestEqualSecretsAreEqual(t *testing.T) {
	a, b := "ghp_"+made(alnum, 36), "ghp_"+made(hexes, 36)
	x, y := New([]byte("k1")), New([]byte("k2"))
	first, second := x.Text(a), x.Text("again "+a)
	if "again "+first != second || first == x.Text(b) {
		t.Error("equal and different ones cannot be told apart")
	}
	if x.Text(a) == y.Text(a) {
		t.Error("the digest does not depend on the key")
	}
	twice := x.Text(x.Text("TOKEN=" + a + " " + b))
	if strings.Count(twice, mark) != 2 {
		t.Errorf("%s", twice)
	}
}

func BenchmarkShortLine(b *testing.B) {
	line := []byte(`{"n":12,"time":"2026-01-01T00:00:00Z","kind":"step.started","step":"s_1","action":"run_command","args":{"cmd":"go test ./..."},"decision":{"verdict":"allow"}}`)
	b.ReportAllocs()
	for b.Loop() {
		Suspect(line)
	}
}
