// Package slack asks people in a Slack channel about held steps: a message with
// the step and the reason, two buttons, and who decided when it is decided. It
// speaks Socket Mode, so nothing of Slack's needs to reach this machine.
//
// Only listed users, and members of listed user groups, may answer. Where the answer goes is the caller's business;
// questions that are answered elsewhere, or expire, are marked so.
package slack

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	v1 "harness/contract/harness/v1"
)

// Bridge is between a channel and the questions of an executor.
type Bridge struct {
	API     *slack.Client // with a bot token, and an app token for Socket Mode
	Channel string        // the ID
	Users   []string      // the IDs of those who may answer
	Groups  []string      // the IDs of user groups whose members may answer too; the bot token needs usergroups:read
	Every   time.Duration // how often it is looked for questions
	Waiting func(context.Context) ([]*v1.Approval, error)
	Decide  func(context.Context, *v1.DecideRequest) (*v1.DecideResponse, error)

	asked map[string]*message
}

// message is a question in the channel.
type message struct {
	approval *v1.Approval
	ts       string
}

const approve, deny = "harness_approve", "harness_deny"

// Run asks and listens until ctx ends.
func (b *Bridge) Run(ctx context.Context) error {
	b.asked = map[string]*message{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	socket := socketmode.New(b.API)
	ended := make(chan error, 1)
	go func() { ended <- socket.RunContext(ctx) }()
	tick := time.NewTicker(b.Every)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("slack: %w", err)
		case <-tick.C:
			if err := b.look(ctx); err != nil && ctx.Err() == nil {
				slog.Error("slack: questions", "err", err)
			}
		case e := <-socket.Events:
			if e.Type != socketmode.EventTypeInteractive {
				continue
			}
			if err := socket.Ack(*e.Request); err != nil {
				slog.Error("slack: acknowledging", "err", err)
			}
			if c, ok := e.Data.(slack.InteractionCallback); ok {
				b.pressed(ctx, c)
			}
		}
	}
}

// look puts new questions into the channel and takes the buttons off old ones.
func (b *Bridge) look(ctx context.Context) error {
	list, err := b.Waiting(ctx)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for _, a := range list {
		open[a.ApprovalId] = true
		if b.asked[a.ApprovalId] != nil {
			continue
		}
		_, ts, err := b.API.PostMessageContext(ctx, b.Channel, slack.MsgOptionText("A step waits for an answer: "+short(a.Summary), false),
			slack.MsgOptionBlocks(append(question(a), buttons(a))...))
		if err != nil {
			return err
		}
		b.asked[a.ApprovalId] = &message{a, ts}
	}
	for id, m := range b.asked {
		if !open[id] {
			b.close(ctx, m, "answered elsewhere, or the waiting time was over")
		}
	}
	return nil
}

// pressed takes what somebody pressed for an answer, if they may give one.
func (b *Bridge) pressed(ctx context.Context, c slack.InteractionCallback) {
	if c.Type != slack.InteractionTypeBlockActions || len(c.ActionCallback.BlockActions) == 0 {
		return
	}
	action := c.ActionCallback.BlockActions[0]
	m := b.asked[action.Value]
	if m == nil || c.Channel.ID != b.Channel {
		return
	}
	if !b.may(ctx, c.User.ID) {
		if _, err := b.API.PostEphemeralContext(ctx, b.Channel, c.User.ID, slack.MsgOptionText("You are not among those who may answer.", false)); err != nil {
			slog.Error("slack", "err", err)
		}
		return
	}
	answer := map[string]v1.DecideRequest_Answer{approve: v1.DecideRequest_allow, deny: v1.DecideRequest_deny}[action.ActionID]
	r, err := b.Decide(ctx, &v1.DecideRequest{SessionId: m.approval.SessionId, ApprovalId: m.approval.ApprovalId, Digest: m.approval.Digest,
		Answer: answer, Approver: c.User.ID, Surface: "slack, " + c.User.ID})
	switch {
	case err != nil:
		slog.Error("slack: the answer was not taken", "approval", m.approval.ApprovalId, "err", err)
	case r.Accepted:
		b.close(ctx, m, fmt.Sprintf("%s by <@%s>", r.Decided.Answer, c.User.ID))
	default:
		b.close(ctx, m, fmt.Sprintf("%s; %s (%s) was first", r.Decided.Answer, plain(r.Decided.Approver), plain(r.Decided.Surface)))
	}
}

// may says whether a person may answer. Who is in a group is asked at each
// answer, so that one who left it is out at once; where Slack does not say, nobody is in it.
func (b *Bridge) may(ctx context.Context, user string) bool {
	if slices.Contains(b.Users, user) {
		return true
	}
	for _, group := range b.Groups {
		members, err := b.API.GetUserGroupMembersContext(ctx, group)
		if err != nil {
			slog.Error("slack: who is in the user group is not known, so its members may not answer", "group", group, "err", err)
			continue
		}
		if slices.Contains(members, user) {
			return true
		}
	}
	return false
}

// close puts the end of a question in the place of its buttons.
func (b *Bridge) close(ctx context.Context, m *message, end string) {
	delete(b.asked, m.approval.ApprovalId)
	_, _, _, err := b.API.UpdateMessageContext(ctx, b.Channel, m.ts, slack.MsgOptionText(short(m.approval.Summary)+": "+end, false),
		slack.MsgOptionBlocks(append(question(m.approval), section("*"+end+"*"))...))
	if err != nil && ctx.Err() == nil {
		slog.Error("slack: updating a message", "err", err)
	}
}

func question(a *v1.Approval) []slack.Block {
	text := "A step waits for an answer\n```" + short(a.Summary) + "```"
	if a.Cwd != "" {
		text += "\nin `" + short(a.Cwd) + "`"
	}
	if r := a.GetDecision().GetReason(); r != "" {
		text += "\n" + short(r)
	}
	return []slack.Block{section(text + "\nuntil " + a.Expires.AsTime().Format("15:04:05 MST") + ", session " + plain(a.SessionId))}
}

func section(text string) slack.Block {
	return slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, text, false, false), nil, nil)
}

func buttons(a *v1.Approval) slack.Block {
	button := func(id, text string, style slack.Style) *slack.ButtonBlockElement {
		return slack.NewButtonBlockElement(id, a.ApprovalId, slack.NewTextBlockObject(slack.PlainTextType, text, false, false)).WithStyle(style)
	}
	return slack.NewActionBlock("harness", button(approve, "Approve", slack.StylePrimary), button(deny, "Deny", slack.StyleDanger))
}

// maxShown keeps a section below the 3000 characters that Slack takes.
const maxShown = 2000

func short(text string) string {
	if r := []rune(text); len(r) > maxShown {
		text = string(r[:maxShown]) + "…"
	}
	return plain(text)
}

// plain keeps a text from being markup: links, mentions, the end of its box.
func plain(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "ˋ").Replace(text)
}
