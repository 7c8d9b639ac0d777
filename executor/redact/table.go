package redact

import (
	"regexp"
	"sync"
)

// rule is one kind of secret: what makes it worth a look, and what it is.
type rule struct {
	name    string
	hint    string // in the text, lower case, or the pattern is not tried
	re      func() *regexp.Regexp
	entropy float64 // bits a character that the secret has at least
}

// kind makes a rule. The secret is the pattern's last group, or all of it. A
// pattern is compiled when its hint is seen for the first time.
func kind(name, hint, pattern string) rule {
	return rule{name: name, hint: hint, re: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })}
}

func random(r rule, bits float64) rule {
	r.entropy = bits
	return r
}

// rules are the forms that the issuers of tokens give them so that scanners
// find them, then the places where secrets without a form stand.
var rules = []rule{
	kind("private-key", "-----end", `-----BEGIN[A-Z0-9 ]* PRIVATE KEY(?: BLOCK)?-----[\s\S]*?-----END[A-Z0-9 ]* PRIVATE KEY(?: BLOCK)?-----`),
	kind("private-key", "private key", `-----BEGIN[A-Z0-9 ]* PRIVATE KEY(?: BLOCK)?-----[^"]*`),
	kind("age-key", "age-secret-key-1", `AGE-SECRET-KEY-1[0-9A-Z]{58}`),
	kind("note-key", "private+key+", `PRIVATE\+KEY\+\S+`),
	kind("aws-key-id", "akia", `\bAKIA[A-Z2-7]{16}\b`),
	kind("aws-key-id", "asia", `\bASIA[A-Z2-7]{16}\b`),
	kind("github-token", "ghp_", `\bghp_[A-Za-z0-9]{36,}`),
	kind("github-token", "gho_", `\bgho_[A-Za-z0-9]{36,}`),
	kind("github-token", "ghu_", `\bghu_[A-Za-z0-9]{36,}`),
	kind("github-token", "ghs_", `\bghs_[A-Za-z0-9]{36,}`),
	kind("github-token", "ghr_", `\bghr_[A-Za-z0-9]{36,}`),
	kind("github-token", "github_pat_", `\bgithub_pat_\w{22,}`),
	kind("gitlab-token", "gl", `\bgl(?:pat|dt|rt|ptt|ft|soat|cbt|agent|imt|oas)-[\w.-]{20,}`),
	kind("slack-token", "xox", `\bxox[abeoprs](?:\.xox[bp])?-[\w-]{10,}`),
	kind("slack-token", "xapp-", `\bxapp-\d-[\w-]{10,}`),
	kind("slack-webhook", "hooks.slack.com", `hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{20,})`),
	kind("discord-webhook", "/api/webhooks/", `/api/webhooks/\d+/([\w-]{40,})`),
	kind("stripe-key", "k_live_", `\b[rs]k_live_[A-Za-z0-9]{10,}`),
	kind("stripe-key", "k_test_", `\b[rs]k_test_[A-Za-z0-9]{10,}`),
	kind("stripe-secret", "whsec_", `\bwhsec_[A-Za-z0-9+/=]{20,}`),
	random(kind("model-key", "sk-", `\bsk-[A-Za-z0-9_-]{20,}`), 3),
	kind("google-key", "aiza", `\bAIza[\w-]{35}`),
	kind("google-token", "ya29.", `\bya29\.[\w-]{20,}`),
	kind("google-secret", "gocspx-", `\bGOCSPX-[\w-]{28}`),
	kind("npm-token", "npm_", `\bnpm_[A-Za-z0-9]{36}`),
	kind("pypi-token", "pypi-ageichl", `\bpypi-AgEIcHl[\w-]{50,}`),
	kind("rubygems-key", "rubygems_", `\brubygems_[a-f0-9]{48}`),
	kind("docker-token", "dckr_", `\bdckr_(?:pat|oat)_[\w-]{20,}`),
	kind("huggingface-token", "hf_", `\bhf_[A-Za-z0-9]{30,}`),
	kind("sendgrid-key", "sg.", `\bSG\.[\w-]{16,}\.[\w-]{40,}`),
	kind("shopify-token", "shp", `\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`),
	kind("square-token", "sq0", `\bsq0(?:atp|csp)-[\w-]{22,}`),
	kind("digitalocean-token", "_v1_", `\bdo[por]_v1_[a-f0-9]{64}`),
	kind("databricks-token", "dapi", `\bdapi[a-f0-9]{32}(?:-\d)?\b`),
	kind("vault-token", "hvs.", `\bhvs\.[\w-]{24,}`),
	kind("vault-token", "hvb.", `\bhvb\.[\w-]{100,}`),
	kind("terraform-token", ".atlasv1.", `\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}`),
	kind("atlassian-token", "atatt3", `\bATATT3[\w=-]{100,}`),
	kind("linear-key", "lin_api_", `\blin_api_[A-Za-z0-9]{40}`),
	kind("notion-token", "ntn_", `\bntn_[A-Za-z0-9]{40,}`),
	kind("grafana-token", "glsa_", `\bglsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}`),
	kind("grafana-token", "glc_", `\bglc_[A-Za-z0-9+/=]{32,}`),
	kind("sentry-token", "sntry", `\bsntry[su]_[\w+/=.-]{40,}`),
	kind("tailscale-key", "tskey-", `\btskey-[\w-]{20,}`),
	kind("doppler-token", "dp.", `\bdp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}`),
	kind("fly-token", "fm", `\bfm[12][ar]?_[A-Za-z0-9+/=_-]{100,}`),
	kind("planetscale-token", "pscale_", `\bpscale_(?:tkn|pw|oauth)_[\w=.-]{32,}`),
	kind("postman-key", "pmak-", `\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}`),
	kind("pulumi-token", "pul-", `\bpul-[a-f0-9]{40}\b`),
	kind("newrelic-key", "nrak-", `\bNRAK-[A-Z0-9]{27}`),
	kind("dynatrace-token", "dt0", `\bdt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}`),
	kind("1password-token", "ops_eyj", `\bops_eyJ[\w+/=-]{100,}`),
	kind("netlify-token", "nfp_", `\bnfp_[A-Za-z0-9]{36,}`),
	kind("supabase-token", "sbp_", `\bsbp_[a-f0-9]{40}`),
	kind("telegram-token", ":aa", `\b\d{8,10}:AA[\w-]{33}`),
	kind("azure-key", "accountkey=", `AccountKey=([A-Za-z0-9+/]{86}==)`),
	kind("jwt", "eyj", `\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}`),
	kind("password-in-url", "://", `[a-zA-Z][\w+.-]*://[^\s/:@"'\\]*:([^\s/:@"'\\$]{3,})@`),
	kind("authorization", "authorization", `(?i)authorization["'\s]{0,3}[:=]["'\s]{0,3}(?:bearer|basic|token|apikey)\s+([\w.~+/=-]{8,})`),
	kind("curl-user", "curl", `\bcurl\b[^|;&\n]*?\s(?:-u|--user)[ =]?["'\\]{0,2}[^\s:"'\\]+:([^\s"'\\$]{3,})`),
	kind("password", "passw", `(?i)passw(?:or)?d\w*["'\\]{0,2}\s*[:=]{1,2}>?\s*["'\\]{0,2}([^\s"'\\$<{(,;&]{6,})`),
	random(kind("secret", "secret", `(?i)secret\w*["'\\]{0,2}\s*[:=]{1,2}>?\s*["'\\]{0,2}([\w.+/=~-]{10,})`), 3),
	random(kind("token", "token", `(?i)token["'\\]{0,2}\s*[:=]{1,2}>?\s*["'\\]{0,2}([\w.+/=~-]{16,})`), 3.2),
	random(kind("api-key", "key", `(?i)(?:api|access|auth|client|private|encryption|signing|account)[_-]?key\w*["'\\]{0,2}\s*[:=]{1,2}>?\s*["'\\]{0,2}([\w.+/=~-]{16,})`), 3.2),
}
