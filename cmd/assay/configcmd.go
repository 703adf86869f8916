package main

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

func newConfig(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration in force",
		Args:  noSuchCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	show := &cobra.Command{
		Use:   "show",
		Short: "Print every setting in force, as a configuration file",
		Example: `  assay config show
  assay config show > assay.yaml           # a file to start from
  assay config show --set rerank.timeout=300ms`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, path, err := e.config()
			if err != nil {
				return err
			}
			cfg = cfg.withoutPasswords()
			if e.jsonOut {
				return e.showConfigJSON(cfg)
			}
			return e.showConfig(cfg, path)
		},
	}
	e.addJSON(show)
	c.AddCommand(show)
	return c
}

// withoutPasswords masks passwords in the addresses of endpoints.
func (c Config) withoutPasswords() Config {
	for _, address := range []*string{&c.Embed.URL, &c.Rerank.URL, &c.Generate.URL} {
		if u, err := url.Parse(*address); err == nil && u.User != nil {
			*address = u.Redacted()
		}
	}
	return c
}

func (e *env) showConfig(cfg Config, path string) error {
	if path == "" {
		path = "defaults alone; there is no " + configFile
	}
	fmt.Fprintf(e.stdout, "# in force: %s\n", path)
	for _, key := range slices.Sorted(maps.Keys(secrets)) {
		fmt.Fprintf(e.stdout, "# %-16s %s (%s)\n", key, e.masked(secrets[key]), secrets[key])
	}
	encoder := yaml.NewEncoder(e.stdout)
	encoder.SetIndent(2)
	return encoder.Encode(cfg)
}

// masked says whether a secret is set, never what it is.
func (e *env) masked(variable string) string {
	if e.getenv(variable) == "" {
		return "not set"
	}
	return "set, ********"
}

func (e *env) showConfigJSON(cfg Config) error {
	data, err := yaml.Marshal(cfg)
	if err != nil {
		return err
	}
	var out map[string]any
	if err := yaml.Unmarshal(data, &out); err != nil {
		return err
	}
	keys := make(map[string]string)
	for key, variable := range secrets {
		keys[key] = e.masked(variable)
	}
	out["secrets"] = keys
	return writeJSON(e.stdout, out)
}
