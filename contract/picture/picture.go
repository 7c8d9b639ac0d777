// Package picture makes an image file into one that a model is shown: PNG or
// JPEG, whole, and no larger than every provider takes. It holds no state but a
// lock: one image at a time is decoded.
package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"
	"image/jpeg"
	"image/png"
	"sync"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"
)

// What is taken, and what comes of it. MaxEdge is what Anthropic scales images
// down to itself; with MaxBytes, MaxCount of them stay below the 20 MB that
// Gemini and Bedrock take as a request, base64 counted.
const (
	MaxFile   = 32 << 20 // bytes of an image file
	MaxPixels = 32 << 20
	MaxEdge   = 1568
	MaxBytes  = 640 << 10
	MaxCount  = 20
	minEdge   = 8 // pixels; smaller ones are refused by some providers
)

// Picture is an image as a model gets it.
type Picture struct {
	MediaType     string // image/png or image/jpeg
	Data          []byte
	Width, Height int
	Format        string // of the file: png, jpeg, gif, webp
	From          image.Point
}

// String says what the image is, and what was done to it.
func (p Picture) String() string {
	s := fmt.Sprintf("%s image of %d×%d pixels", p.Format, p.From.X, p.From.Y)
	if p.From != (image.Point{X: p.Width, Y: p.Height}) {
		s += fmt.Sprintf(", shown at %d×%d", p.Width, p.Height)
	}
	if p.Format == "gif" {
		s += ", its first frame"
	}
	return s
}

// Kind is the media type by a file's first bytes, "" for what is no image that
// is shown. 12 bytes are enough.
func Kind(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

var one sync.Mutex // bounds the memory of decoded images

// Fit reads an image file whole, and scales it down where it is too large. The
// error says why it cannot be shown.
func Fit(data []byte) (Picture, error) {
	if len(data) > MaxFile {
		return Picture{}, fmt.Errorf("the image has %d bytes, more than the %d that are shown", len(data), MaxFile)
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return Picture{}, damaged(err)
	}
	p := Picture{Format: format, From: image.Pt(c.Width, c.Height)}
	switch {
	case int64(c.Width)*int64(c.Height) > MaxPixels:
		return p, fmt.Errorf("the image has %d×%d pixels, more than the %d million that are shown", c.Width, c.Height, MaxPixels>>20)
	case min(c.Width, c.Height) < minEdge:
		return p, fmt.Errorf("the image has %d×%d pixels, too few to be shown", c.Width, c.Height)
	}
	one.Lock()
	defer one.Unlock()
	m, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return p, damaged(err)
	}
	as := "image/" + format
	if (format == "png" || format == "jpeg" && c.ColorModel != color.CMYKModel) && max(c.Width, c.Height) <= MaxEdge && len(data) <= MaxBytes {
		p.MediaType, p.Data, p.Width, p.Height = as, data, c.Width, c.Height
		return p, nil
	}
	return p.shrink(m)
}

func damaged(err error) error {
	return fmt.Errorf("the image is damaged or of an unknown kind: %v", err)
}

// shrink encodes m, smaller and smaller until it is small enough.
func (p Picture) shrink(m image.Image) (Picture, error) {
	for edge := MaxEdge; edge >= minEdge; edge = edge * 3 / 4 {
		scaled := scale(m, edge)
		p.Width, p.Height = scaled.Bounds().Dx(), scaled.Bounds().Dy()
		if min(p.Width, p.Height) < minEdge {
			break
		}
		var b bytes.Buffer
		if err := png.Encode(&b, scaled); err != nil {
			return p, err
		}
		p.MediaType = "image/png"
		for quality := 85; b.Len() > MaxBytes && quality >= 55; quality -= 15 {
			b.Reset()
			if err := jpeg.Encode(&b, opaque(scaled), &jpeg.Options{Quality: quality}); err != nil {
				return p, err
			}
			p.MediaType = "image/jpeg"
		}
		if b.Len() <= MaxBytes {
			p.Data = b.Bytes()
			return p, nil
		}
	}
	return p, fmt.Errorf("the image of %d×%d pixels is too narrow to be shown", p.From.X, p.From.Y)
}

// scale is m with its longer side at most edge pixels.
func scale(m image.Image, edge int) image.Image {
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	if long := max(w, h); long > edge {
		w, h = max(1, w*edge/long), max(1, h*edge/long)
	}
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.ApproxBiLinear.Scale(out, out.Bounds(), m, m.Bounds(), draw.Src, nil)
	return out
}

// opaque is m on white: JPEG has no transparency.
func opaque(m image.Image) image.Image {
	out := image.NewRGBA(m.Bounds())
	draw.Draw(out, out.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), m, m.Bounds().Min, draw.Over)
	return out
}
