package audit

import "strings"

// ECSVersion is the version of the Elastic Common Schema whose names an export uses.
const ECSVersion = "8.11.0"

// categories is how each kind of record is filed: event.category and event.type.
var categories = map[Kind][2]string{
	Opened:    {"session", "start"},
	Policy:    {"configuration", "change"},
	Started:   {"process", "start"},
	Asked:     {"session", "info"},
	Decided:   {"session", "info"},
	Program:   {"process", "start"},
	Connected: {"network", "connection"},
	Finished:  {"process", "end"},
	Refused:   {"process", "error"},
	Recovered: {"configuration", "info"},
}

// changeTypes is event.type for what happened to a file.
var changeTypes = map[string]string{"created": "creation", "modified": "change", "deleted": "deletion"}

// ECS is a record as events of the Elastic Common Schema: one, and one more for
// each file that it changed. What the schema has no name for is below "harness".
func (e Entry) ECS() []map[string]any {
	c := categories[e.Kind]
	types := []string{c[1]}
	outcome := "success"
	if e.Decision != nil && e.Decision.Verdict == "deny" {
		types, outcome = append(types, "denied"), "failure"
	} else if e.Kind == Finished && e.Status != "ok" {
		outcome = "failure"
	}
	if e.Kind == Started || e.Kind == Asked {
		outcome = "unknown"
	}
	event := set{}
	event.put("category", []string{c[0]})
	event.put("type", types)
	event.put("kind", "event")
	event.put("module", "harness")
	event.put("action", string(e.Kind))
	event.put("outcome", outcome)
	event.put("sequence", e.N)
	event.put("duration", int64(e.WallMS*1e6))
	event.put("start", e.Began)
	out := e.base(event)
	e.process(out)
	e.network(out)
	if e.Decision != nil {
		event.put("reason", e.Decision.Reason)
		out.put("rule", set{}.with("name", e.Decision.Rule).with("ruleset", e.Decision.Source))
	}
	out.put("error", set{}.with("message", e.Error))
	out.put("user", set{}.with("name", e.Approver))
	out.put("message", e.Note)
	events := []map[string]any{out}
	for _, ch := range e.Changes {
		ev := set{}.with("category", []string{"file"}).with("type", []string{changeTypes[ch.Kind]}).with("kind", "event").
			with("module", "harness").with("action", "file."+ch.Kind).with("outcome", outcome).with("sequence", e.N)
		f := e.base(ev)
		f.put("file", set{}.with("path", ch.Path).with("size", ch.Size).
			with("hash", set{}.with("sha256", strings.TrimPrefix(ch.Digest, "sha256:"))))
		events = append(events, f)
	}
	return events
}

// base is what every event has.
func (e Entry) base(event set) set {
	return set{"@timestamp": e.Time, "ecs": set{"version": ECSVersion}, "event": event,
		"service": set{"type": "harness-executor"},
		"harness": set{}.with("session", e.Session).with("step", e.Step).with("step_action", e.Action).with("digest", e.Digest).
			with("args", e.Args).with("status", e.Status).with("approval", e.Approval).with("answer", e.Answer).with("surface", e.Surface).
			with("scope", e.Scope).with("limit", e.Limit).with("output", e.Output).with("policy", e.Policy).with("policy_sources", e.Sources).
			with("rung", e.Rung).with("capabilities", e.Capabilities).with("missing", e.Missing).with("workspace", e.Workspace).
			with("planner", e.Planner).with("executor", e.Executor)}
}

func (e Entry) process(out set) {
	p := set{}.with("executable", e.Program).with("args", e.Argv).with("working_directory", e.Cwd)
	if cmd, ok := e.Args["cmd"].(string); ok {
		p.put("command_line", cmd)
	}
	if e.ExitCode != nil {
		p["exit_code"] = *e.ExitCode
	}
	out.put("process", p)
}

func (e Entry) network(out set) {
	out.put("destination", set{}.with("domain", e.Host).with("port", e.Port).with("ip", e.Address).with("bytes", e.Received))
	out.put("source", set{}.with("bytes", e.Sent))
	out.put("network", set{}.with("protocol", e.Protocol))
}

// set is a JSON object that takes no empty values.
type set map[string]any

func (s set) put(name string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case int64:
		if v == 0 && name != "sequence" {
			return
		}
	case uint32:
		if v == 0 {
			return
		}
	case uint64:
		if v == 0 {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	case map[string]any:
		if len(v) == 0 {
			return
		}
	case set:
		if len(v) == 0 {
			return
		}
	}
	s[name] = value
}

func (s set) with(name string, value any) set {
	s.put(name, value)
	return s
}
