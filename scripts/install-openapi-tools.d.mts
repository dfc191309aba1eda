// The types of install-openapi-tools.mjs, for the test that uses it.
export declare const OPENAPI_TOOLS: string;
export declare function installOpenapiTools(): void;
