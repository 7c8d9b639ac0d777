package model

import (
	"encoding/base64"
	"fmt"
)

// Image is a PNG or JPEG that fits every provider, as harness/contract/picture makes it.
type Image struct {
	Name      string `json:"name"` // the file's
	MediaType string `json:"media_type"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Data      []byte `json:"data"`
}

// Tokens is about what an image counts as with the providers, rather too many:
// Anthropic's rule of 750 pixels a token, which is above the tiles of the others.
func (i Image) Tokens() int { return max(i.Width*i.Height/750, 85) }

// Base64 is the image's bytes as the wires have them.
func (i Image) Base64() string { return base64.StdEncoding.EncodeToString(i.Data) }

// URL is the image as a data URL.
func (i Image) URL() string { return "data:" + i.MediaType + ";base64," + i.Base64() }

// note stands in the place of images that are not shown.
func note(images []Image, why string) string {
	text := ""
	for _, i := range images {
		text += fmt.Sprintf("\n[image %s is not shown: %s]", i.Name, why)
	}
	return text
}

// Blind is messages for a model that takes no images: a note is in the place of each.
func Blind(messages []Message) []Message {
	out := make([]Message, len(messages))
	for i, m := range messages {
		out[i] = m.Without("this model takes text only")
	}
	return out
}

func blinded(results []ToolResult, why string) []ToolResult {
	out := results
	for i, r := range results {
		if len(r.Images) == 0 {
			continue
		}
		if &out[0] == &results[0] {
			out = append([]ToolResult{}, results...)
		}
		out[i].Text, out[i].Images = r.Text+note(r.Images, why), nil
	}
	return out
}

// Without is m with notes in the place of its images.
func (m Message) Without(why string) Message {
	if len(m.Images) > 0 {
		m.Text += note(m.Images, why)
		m.Images = nil
	}
	m.Results = blinded(m.Results, why)
	return m
}

// Pictures is how many images a message has.
func (m Message) Pictures() int {
	n := len(m.Images)
	for _, r := range m.Results {
		n += len(r.Images)
	}
	return n
}
