package ingest

import (
	"context"
	"fmt"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// toMarkdown converts content that shape has prepared. Escaping is off: the text is for reading,
// searching and citing, where a backslash in "max\_size" is a flaw.
func toMarkdown(ctx context.Context, content *html.Node) (string, error) {
	conv := converter.NewConverter(
		converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(
			base.NewBasePlugin(),
			commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
			strikethrough.NewStrikethroughPlugin(),
			table.NewTablePlugin(
				table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
				table.WithSpanCellBehavior(table.SpanBehaviorMirror),
				table.WithHeaderPromotion(true),
				table.WithSkipEmptyRows(true),
				table.WithNewlineBehavior(table.NewlineBehaviorPreserve),
			),
		),
	)
	for _, tag := range []string{"summary", "dt", "dd"} {
		conv.Register.TagType(tag, converter.TagTypeBlock, converter.PriorityEarly)
	}
	conv.Register.Renderer(renderElement, converter.PriorityEarly)
	out, err := conv.ConvertNode(content, converter.WithContext(ctx))
	if err != nil {
		return "", fmt.Errorf("convert the HTML: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return tidy(restoreAngles.Replace(string(out))), nil
}

// renderElement adds what the converter has no form for, and renders nothing more once the time
// is up.
func renderElement(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	if ctx.Err() != nil {
		return converter.RenderSuccess
	}
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return renderHeading(ctx, w, n)
	case atom.Summary, atom.Dt:
		return renderBlock(ctx, w, n, "**", "**")
	case atom.Dd:
		return renderBlock(ctx, w, n, ": ", "")
	}
	return converter.RenderTryNext
}

// renderHeading stands in for the converter's, which without escaping turns "C#" into "\#".
func renderHeading(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var b strings.Builder
	ctx.RenderChildNodes(ctx, &b, n)
	if text := strings.Join(strings.Fields(b.String()), " "); text != "" {
		level := int(n.Data[1] - '0')
		_, _ = w.WriteString("\n\n" + strings.Repeat("#", level) + " " + text + "\n\n")
	}
	return converter.RenderSuccess
}

func renderBlock(ctx converter.Context, w converter.Writer, n *html.Node, before, after string) converter.RenderStatus {
	var b strings.Builder
	ctx.RenderChildNodes(ctx, &b, n)
	text := strings.TrimSpace(b.String())
	if text == "" {
		return converter.RenderSuccess
	}
	if before == "**" && strings.ContainsAny(text, "*\n`") {
		before, after = "", ""
	}
	_, _ = w.WriteString("\n\n" + before + text + after + "\n\n")
	return converter.RenderSuccess
}

// tidy takes out, outside code, what conversion leaves behind: trailing spaces, items without text,
// runs of blank lines.
func tidy(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	var lines lineScanner
	blank := true // nothing yet
	for line := range strings.Lines(text) {
		if lines.code(line) {
			out.WriteString(line)
			blank = false
			continue
		}
		line = strings.TrimRight(line, " \t\n")
		if bare := strings.TrimSpace(line); bare == "-" || bare == `\` {
			continue
		}
		if line == "" && blank {
			continue
		}
		blank = line == ""
		out.WriteString(line)
		out.WriteByte('\n')
	}
	return out.String()
}
