package embed

import (
	"strings"
	"testing"
)

func TestEverythingThatIsWrongWithTheOptionsIsSaidAtOnce(t *testing.T) {
	_, err := NewEndpoint(quiet(), EndpointOptions{
		BaseURL: "ftp://user:hunter22@host", APIKey: "a\nb", SendDimensions: true,
		BatchSize: -1, Timeout: -1, MaxAttempts: -2, Headers: map[string]string{"X Y": "1", "Fine": "2"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"must begin with http:// or https://", "the model is not named", "the API key holds a line break",
		`header "X Y" cannot be sent`, "dimensions are to be sent, but their number is not set",
		"batch size is negative (-1)", "timeout is negative", "max attempts is negative (-2)",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error: %v", want, err)
		}
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != 8 {
		t.Errorf("%d problems are reported, want 8: %v", got, err)
	}
	if strings.Contains(err.Error(), "hunter22") {
		t.Errorf("the password is in the error: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"http://host:8080/v1":                "http://host:8080/v1/embeddings",
		"http://host:8080/v1/":               "http://host:8080/v1/embeddings",
		"https://host/v1/embeddings":         "https://host/v1/embeddings",
		" https://host ":                     "https://host/embeddings",
		"https://u:p@host/v1?api-version=1#": "https://host/v1/embeddings",
	} {
		e, err := NewEndpoint(quiet(), EndpointOptions{BaseURL: base, Model: "m"})
		if err != nil {
			t.Errorf("%s: %v", base, err)
			continue
		}
		if e.shown != want {
			t.Errorf("%s is shown as %s, want %s", base, e.shown, want)
		}
	}
	for _, base := range []string{"", "host:8080/v1", "http://", "http://ho st:pw", "http://%zz"} {
		if _, err := NewEndpoint(quiet(), EndpointOptions{BaseURL: base, Model: "m"}); err == nil {
			t.Errorf("%q is accepted", base)
		}
	}
}

func TestFingerprintHoldsWhatChangesVectorsOfDocuments(t *testing.T) {
	print := func(change func(*EndpointOptions)) string {
		o := EndpointOptions{BaseURL: "http://host", Model: "m"}
		change(&o)
		e, err := NewEndpoint(quiet(), o)
		if err != nil {
			t.Fatal(err)
		}
		return e.Fingerprint()
	}
	for want, change := range map[string]func(*EndpointOptions){
		"":                            func(o *EndpointOptions) { o.QueryPrefix, o.BatchSize, o.MaxInputTokens = "q", 3, 8191 },
		`document_prefix="passage: "`: func(o *EndpointOptions) { o.DocumentPrefix = "passage: " },
		"max_input_tokens=512":        func(o *EndpointOptions) { o.MaxInputTokens = 512 },
	} {
		if got := print(change); got != want {
			t.Errorf("fingerprint is %q, want %q", got, want)
		}
	}
}
