package ingest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

var samples = map[string]string{
	"korean":              "사용 중 문제가 발생하면 고객 지원팀에 문의하십시오. 환불은 영업일 기준 5일 이내에 처리됩니다.",
	"japanese":            "ご利用中に問題が発生した場合は、サポートチームまでお問い合わせください。返金は五営業日以内に行われます。",
	"simplified chinese":  "如果您在使用过程中遇到问题,请联系我们的客户支持团队。退款将在五个工作日内退回到原付款方式。",
	"traditional chinese": "如果您在使用過程中遇到問題,請聯絡我們的客戶支援團隊。退款將在五個工作日內退回到原付款方式。",
	"russian":             "Если у вас возникли проблемы, обратитесь в службу поддержки. Возврат средств производится в течение пяти рабочих дней.",
	"french":              "Si vous rencontrez un problème, contactez l'équipe d'assistance. Le remboursement est effectué sous cinq jours ouvrés, « après vérification » – 12 €.",
	"german":              "Über die Rückerstattung entscheidet der Kundendienst; die Prüfung dauert fünf Tage. Schlüssel müssen regelmäßig erneuert werden.",
	"english":             "Rotate the signing key before it expires.",
}

const english = "This is the support handbook of the product, version 3. It tells you how to do things.\n"

func TestTextInAnyEncodingIsRead(t *testing.T) {
	for _, c := range []struct {
		sample string
		name   string
		enc    encoding.Encoding
	}{
		{"korean", "EUC-KR", korean.EUCKR},
		{"japanese", "Shift_JIS", japanese.ShiftJIS}, {"japanese", "EUC-JP", japanese.EUCJP}, {"japanese", "ISO-2022-JP", japanese.ISO2022JP},
		{"simplified chinese", "GB18030", simplifiedchinese.GB18030}, {"simplified chinese", "GBK", simplifiedchinese.GBK},
		{"traditional chinese", "Big5", traditionalchinese.Big5},
		{"russian", "KOI8-R", charmap.KOI8R}, {"russian", "Windows-1251", charmap.Windows1251},
		{"french", "Windows-1252", charmap.Windows1252}, {"german", "ISO-8859-1", charmap.ISO8859_1},
	} {
		for _, shape := range []struct{ name, before, after string }{{"alone", "", ""}, {"in English", strings.Repeat(english, 5), english}} {
			want := shape.before + samples[c.sample] + shape.after
			raw, err := encoding.ReplaceUnsupported(c.enc.NewEncoder()).Bytes([]byte(want))
			if err != nil {
				t.Fatal(err)
			}
			r := readOne(t, "page.txt", string(raw))
			if r.Document == nil || r.Document.Text != strings.TrimSpace(want) || len(r.Warnings) > 0 {
				t.Errorf("%s as %s %s: %s %v %v", c.sample, c.name, shape.name, r.Reason, r.Err, r.Document)
			}
		}
	}
}

func TestWideEncodingsAreReadWithAndWithoutMark(t *testing.T) {
	for sample, text := range samples {
		text += "\n" + text
		for name, enc := range map[string]encoding.Encoding{
			"UTF-16LE": unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "UTF-16BE": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
			"UTF-32LE": utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "UTF-32BE": utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM),
			"UTF-16LE with mark": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "UTF-16BE with mark": unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
			"UTF-32LE with mark": utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "UTF-8 with mark": unicode.UTF8BOM,
		} {
			raw, err := enc.NewEncoder().Bytes([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			r := readOne(t, "page.txt", string(raw))
			// Without a mark only ASCII among the characters gives UTF-16 away; Japanese and Chinese have little.
			if strings.HasPrefix(name, "UTF-16") && !strings.HasSuffix(name, "mark") && !strings.Contains(samples[sample], " ") {
				continue
			}
			if r.Document == nil || r.Document.Text != text {
				t.Errorf("%s as %s: %s %v %v", sample, name, r.Reason, r.Err, r.Document)
			}
		}
	}
}

func TestDeclarationIsBelievedOnlyIfTheBytesAgree(t *testing.T) {
	page := func(declared string, enc encoding.Encoding, text string) string {
		raw, err := enc.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return `<html><head><meta charset="` + declared + `"></head><body><p>` + raw + `</p></body></html>`
	}
	for name, c := range map[string]struct{ src, want string }{
		"declared and true":                 {page("iso-8859-2", charmap.ISO8859_2, "Zażółć gęślą jaźń"), "Zażółć gęślą jaźń"},
		"declared UTF-8, is Latin-1":        {page("utf-8", charmap.ISO8859_1, samples["german"]), samples["german"]},
		"declared UTF-8, is Shift_JIS":      {page("utf-8", japanese.ShiftJIS, samples["japanese"]), samples["japanese"]},
		"declared Latin-1, is UTF-8":        {page("iso-8859-1", encoding.Nop, samples["korean"]), samples["korean"]},
		"declared EUC-KR, is Windows-1251":  {page("euc-kr", charmap.Windows1251, samples["russian"]), samples["russian"]},
		"declared GB2312, uses more":        {page("gb2312", simplifiedchinese.GBK, "退款說明镕"), "退款說明镕"},
		"declared something that is not":    {page("klingon", charmap.Windows1252, "café"), "café"},
		"declared UTF-16, is Latin-1":       {page("utf-16", charmap.Windows1252, "café crème"), "café crème"},
		"declared in the XML declaration":   {`<?xml version="1.0" encoding="koi8-r"?><html><body>` + strings.TrimSuffix(strings.TrimPrefix(page("", charmap.KOI8R, "Привет"), `<html><head><meta charset=""></head><body>`), `</body></html>`) + `</body></html>`, "Привет"},
		"declared by http-equiv, uppercase": {`<html><head><META HTTP-EQUIV="Content-Type" CONTENT="text/html; CHARSET=WINDOWS-1251"></head><body>` + string([]byte{0xcf, 0xf0, 0xe8}) + `</body></html>`, "При"},
	} {
		if got := textOfStream(t, "page.html", c.src); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestDamagedUTF8StaysUTF8(t *testing.T) {
	r := readOne(t, "a.txt", strings.Repeat(samples["korean"], 20)+"\xff"+samples["korean"]+"\xed\x95")
	if r.Document == nil || !strings.Contains(r.Document.Text, "환불") || strings.Count(r.Document.Text, "\uFFFD") != 2 || len(r.Warnings) != 1 {
		t.Errorf("%s %v %v", r.Reason, r.Err, r.Warnings)
	}
}

func TestTextIsNormalised(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb\rc\n":                          "a\nb\nc",
		"a log line \x00with\x07 bells\x1b[0m": "a log line with bells[0m",
		"page\fnext\vline\u2028separate":       "page\nnext\nline\nseparate",
		"e\u0301 \u1112\u1161\u11ab":           "é 한",
		"\uFEFFa\uFEFFb":                       "ab",
		"\n\n    indented":                     "    indented",
		"tab\tstays \u200dnj":                  "tab\tstays \u200dnj",
	} {
		if got := textOfStream(t, "a.txt", in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestEveryByteValueEndsInTextOrAReason(t *testing.T) {
	for b := range 256 {
		for _, n := range []int{1, 3, 100} {
			checkResult(t, readOne(t, "a.txt", strings.Repeat(string([]byte{byte(b)}), n)+" end"))
		}
	}
}

func TestDerivedFAQsAllGiveTheSameText(t *testing.T) {
	dir := sharedData(t, "breakers/derived")
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return textOfStream(t, name, string(raw))
	}
	want := read("faq.utf8.txt")
	for _, name := range []string{"faq.utf16le-bom.txt", "faq.utf8-bom.txt", "faq.cr-only.txt"} {
		if read(name) != want {
			t.Errorf("%s differs", name)
		}
	}
	utf8Page, err := os.ReadFile(filepath.Join(dir, "..", "apache-docs", "ja_install.html"))
	if err != nil {
		t.Fatal(err)
	}
	if read("ja_install.shift_jis-declared-utf8.html") != textOfStream(t, "a.html", string(utf8Page)) {
		t.Error("the Shift_JIS page differs from the UTF-8 one")
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s), "")
		for name, enc := range map[string]encoding.Encoding{"utf-8": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "big5": japanese.ShiftJIS, "koi8-r": charmap.KOI8R, "iso-2022-jp": korean.EUCKR} {
			raw, _ := encoding.ReplaceUnsupported(enc.NewEncoder()).Bytes([]byte(s))
			f.Add(raw, name)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, declared string) {
		before := bytes.Clone(raw)
		text, _, err := decode(raw, declared)
		if !bytes.Equal(raw, before) {
			t.Fatal("the source was changed")
		}
		if err == nil && !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		if clean := normalise(text); normalise(clean) != clean {
			t.Fatalf("normalising %q twice gives something else", text)
		}
	})
}
