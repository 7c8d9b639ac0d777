package recorded

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"strings"
)

// checkImage says what a provider would refuse in an image: of the limits that
// they publish, the strictest. Gemini takes no GIF, Bedrock at most 3.75 MB,
// and Anthropic 2000 pixels a side where there are many.
func checkImage(mediaType, data string) error {
	if mediaType != "image/png" && mediaType != "image/jpeg" {
		return fmt.Errorf("an image of type %q", mediaType)
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("an image: %w", err)
	}
	if len(raw) > 3_750_000 {
		return fmt.Errorf("image exceeds 3.75 MB: %d bytes", len(raw))
	}
	m, format, err := image.Decode(bytes.NewReader(raw))
	switch {
	case err != nil:
		return fmt.Errorf("could not process image: %w", err)
	case "image/"+format != mediaType:
		return fmt.Errorf("the image is %s, not %s", format, mediaType)
	case max(m.Bounds().Dx(), m.Bounds().Dy()) > 2000:
		return errors.New("image dimensions exceed 2000 pixels")
	}
	return nil
}

// checkDataURL is checkImage for the form data:TYPE;base64,DATA.
func checkDataURL(url string) error {
	rest, ok := strings.CutPrefix(url, "data:")
	mediaType, data, found := strings.Cut(rest, ";base64,")
	if !ok || !found {
		return fmt.Errorf("%.40q is no data URL", url)
	}
	return checkImage(mediaType, data)
}

// parts is a content of OpenAI's: words, or a list of words and images. It says
// whether there is something in it.
func parts(content json.RawMessage) (bool, error) {
	var text string
	if len(content) == 0 || string(content) == "null" || json.Unmarshal(content, &text) == nil {
		return strings.TrimSpace(text) != "", nil
	}
	var list []struct {
		Type, Text string
		ImageURL   json.RawMessage `json:"image_url"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return false, err
	}
	for _, p := range list {
		switch p.Type {
		case "text", "input_text", "output_text":
			if strings.TrimSpace(p.Text) == "" {
				return false, errors.New("a text part is empty")
			}
		case "image_url":
			var u struct{ URL string }
			if err := json.Unmarshal(p.ImageURL, &u); err != nil {
				return false, err
			}
			if err := checkDataURL(u.URL); err != nil {
				return false, err
			}
		case "input_image":
			var u string
			if err := json.Unmarshal(p.ImageURL, &u); err != nil {
				return false, err
			}
			if err := checkDataURL(u); err != nil {
				return false, err
			}
		default:
			return false, fmt.Errorf("a part of type %q", p.Type)
		}
	}
	return len(list) > 0, nil
}
