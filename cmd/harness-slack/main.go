// Command harness-slack asks people in a Slack channel about held steps. It is a
// program of its own so that Slack's library costs no other one its start. It
// is an approver like any: it signs with a key, and reaches the machine that
// acts through harness approvals serve.
//
//	harness approvals key slack slack.key >> ~/.config/harness/approvers
//	harness approvals serve &
//	SLACK_BOT_TOKEN=… SLACK_APP_TOKEN=… harness-slack --key slack.key --channel C0123 --user U0123
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/slack-go/slack"

	"harness/executor/approval"
	bridge "harness/surface/slack"
)

type cli struct {
	URL      string   `name:"url" default:"http://127.0.0.1:8377" help:"Where harness approvals serve runs."`
	Key      []byte   `type:"filecontent" required:"" help:"The file with the private key of this approver."`
	Channel  string   `required:"" help:"The ID of the channel."`
	User     []string `help:"The ID of a user who may answer; may be given more than once."`
	Group    []string `help:"The ID of a user group whose members may answer; the bot needs the scope usergroups:read."`
	BotToken string   `env:"SLACK_BOT_TOKEN" required:"" help:"The bot's token."`
	AppToken string   `env:"SLACK_APP_TOKEN" required:"" help:"The app's token, for Socket Mode."`
	API      string   `name:"api" default:"https://slack.com/api/" hidden:""`
}

func main() {
	var c cli
	k := kong.Parse(&c, kong.Name("harness-slack"), kong.Description("Asks people in a Slack channel about steps that wait for an answer."))
	if len(c.User)+len(c.Group) == 0 {
		k.Fatalf("nobody may answer: name people with --user, or a user group with --group")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	far := &approval.Client{URL: c.URL, Key: string(c.Key)}
	b := &bridge.Bridge{API: slack.New(c.BotToken, slack.OptionAppLevelToken(c.AppToken), slack.OptionAPIURL(c.API)),
		Channel: c.Channel, Users: c.User, Groups: c.Group, Every: time.Second, Waiting: far.Waiting, Decide: far.Decide}
	k.FatalIfErrorf(b.Run(ctx))
}
